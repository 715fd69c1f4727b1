//! Running other programs, with errors that say what ran, where, and how it ended.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// `cargo`, the one that runs this task.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Settings of the xtask package itself must not leak into the packages it builds.
    for (key, _) in std::env::vars_os() {
        let name = key.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&key);
        }
    }
    command
}

/// Runs a program with its output on the terminal; an exit code other than 0 is an error.
///
/// # Errors
/// It could not be started or failed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// Runs a program and returns its standard output; its standard error is in the error.
///
/// # Errors
/// It could not be started or failed.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!(
            "`{}` failed ({status}): {}",
            line(command),
            String::from_utf8_lossy(&stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// The command as one could type it, with the directory if one is set.
pub(crate) fn line(command: &Command) -> String {
    let mut text = String::new();
    if let Some(directory) = command.get_current_dir() {
        text.push_str(&format!("cd {} && ", directory.display()));
    }
    text.push_str(&shown(command.get_program()));
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&shown(argument));
    }
    text
}

/// Whether a program of that name is on `PATH`.
pub(crate) fn exists(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory: std::path::PathBuf| {
            is_executable(&directory.join(OsString::from(program)))
        })
    })
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn shown(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || "'\"$&|;<>*".contains(c)) {
        format!("'{}'", text.replace('\'', r"'\''"))
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_its_words() {
        let error = capture(Command::new("sh").args(["-c", "echo broken >&2; exit 3"]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("sh -c 'echo broken >&2; exit 3'"), "{error}");
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.ends_with("broken"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut Command::new("no-such-program-7")).unwrap_err();
        assert!(format!("{error:#}").contains("no-such-program-7"));
        assert!(!exists("no-such-program-7"));
        assert!(exists("sh"));
    }
}
