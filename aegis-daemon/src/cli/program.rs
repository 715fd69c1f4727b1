//! Finding the command's program, so that a typo is refused at submission and not hours later.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use aegis_common::wire::{ErrorCode, Failure};
use rustix::fs::{Access, AtFlags, CWD};

use super::error::hinted;
use super::render::shell;

/// Where execvp(3) looks without PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Checks that execvp(3) will find `program` in `path` (the job's PATH) from `cwd`.
pub(super) fn check(program: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Result<(), Failure> {
    let shown = shell::word(program.as_bytes());
    if program.as_bytes().contains(&b'/') {
        let file = cwd.join(program);
        return match inspect(&file) {
            Found::Runnable => Ok(()),
            Found::Missing => Err(refused(
                format!("cannot run {shown}: there is no such file"),
                format!(
                    "the path is taken from the working directory {}",
                    shell::word(cwd.as_os_str().as_bytes())
                ),
            )),
            Found::Directory => Err(refused(
                format!("cannot run {shown}: it is a directory"),
                "name a program in it".to_owned(),
            )),
            Found::NotExecutable => Err(refused(
                format!("cannot run {shown}: it is not executable"),
                format!("chmod +x it, or name its interpreter: aegis submit -- python {shown}"),
            )),
        };
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut not_executable: Option<PathBuf> = None;
    for dir in std::env::split_paths(path) {
        // An empty entry means the working directory; a relative one starts from it.
        let file = cwd.join(dir).join(program);
        match inspect(&file) {
            Found::Runnable => return Ok(()),
            Found::NotExecutable => not_executable = not_executable.or(Some(file)),
            Found::Missing | Found::Directory => {}
        }
    }
    Err(match not_executable {
        Some(file) => refused(
            format!(
                "cannot run {shown}: {} is not executable",
                shell::word(file.as_os_str().as_bytes())
            ),
            "chmod +x it, or name its interpreter".to_owned(),
        ),
        None => refused(
            format!("cannot run {shown}: no such command in PATH"),
            hint(program, cwd),
        ),
    })
}

/// Most who end here meant a file beside them, or wrote one string for a shell.
fn hint(program: &OsStr, cwd: &Path) -> String {
    let shown = shell::word(program.as_bytes());
    if cwd.join(program).is_file() {
        format!("there is such a file here: write ./{shown}")
    } else if program.as_bytes().contains(&b' ') {
        "give program and arguments separately, or run a shell: aegis submit -- sh -c '…'"
            .to_owned()
    } else {
        "check the spelling, or activate the environment that has it before submitting".to_owned()
    }
}

enum Found {
    Runnable,
    Missing,
    Directory,
    NotExecutable,
}

fn inspect(file: &Path) -> Found {
    match file.metadata() {
        Ok(meta) if meta.is_dir() => Found::Directory,
        Ok(_) => match rustix::fs::accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => Found::Runnable,
            Err(_) => Found::NotExecutable,
        },
        Err(_) => Found::Missing,
    }
}

fn refused(message: String, hint: String) -> Failure {
    hinted(ErrorCode::BadRequest, message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn message(program: &str, path: &str, cwd: &Path) -> String {
        let failure = check(OsStr::new(program), Some(OsStr::new(path)), cwd).unwrap_err();
        assert_eq!(failure.code, ErrorCode::BadRequest);
        format!("{}; {}", failure.message, failure.hint.unwrap())
    }

    #[test]
    fn what_execvp_finds_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("train");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let path = dir.path().to_str().unwrap();

        assert!(message("train", path, Path::new("/")).contains("not executable"));
        assert!(message("./train", "/bin", dir.path()).contains("chmod"));
        assert!(message("train", "/bin", dir.path()).contains("./train"));
        assert!(message("nosuch", path, Path::new("/")).contains("no such command"));
        assert!(message("./nosuch", path, dir.path()).contains("no such file"));
        assert!(message("../", path, dir.path()).contains("directory"));
        assert!(message("a b", path, dir.path()).contains("sh -c"));

        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        for (program, path) in [("train", path), ("./train", "/bin"), ("train", ":/bin")] {
            check(OsStr::new(program), Some(OsStr::new(path)), dir.path()).unwrap();
        }
        check(OsStr::new("sh"), None, Path::new("/")).unwrap();
    }

    #[test]
    fn escapes_in_a_program_name_stay_harmless() {
        let text = message("\x1b[31m", "/bin", Path::new("/"));
        assert!(!text.contains('\x1b'), "{text}");
    }
}
