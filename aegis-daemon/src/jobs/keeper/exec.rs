//! Executing the command: the search in the job's PATH and precise errors.

use std::ffi::CString;
use std::io::{Error, ErrorKind};
use std::path::Path;

use aegis_common::bytes::ByteString;

use super::super::environment::value;
use crate::sys::process::execve;

/// Searched if the job's environment has no PATH.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";
/// Linux's limit for one argument or variable (`MAX_ARG_STRLEN`), bytes.
const MAX_ARGUMENT: usize = 128 << 10;

/// Replaces the process by the command. Returns only if that failed: why, with the shell's exit
/// code for it.
pub(super) fn exec(argv: &[ByteString], env: &[ByteString]) -> String {
    let strings = |what: &str, list: &[ByteString]| -> Result<Vec<CString>, String> {
        let convert = |entry: &ByteString| {
            CString::new(entry.0.clone())
                .map_err(|_| format!("{what} {:?} contains a NUL byte", entry.lossy()))
        };
        list.iter().map(convert).collect()
    };
    let prepared = strings("the argument", argv)
        .and_then(|argv| Ok((argv, strings("the environment variable", env)?)));
    let (arguments, environment) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return error,
    };
    let Some(program) = argv.first().filter(|program| !program.0.is_empty()) else {
        return "the command is empty".to_owned();
    };
    if program.0.contains(&b'/') {
        let error = attempt(&program.0, &arguments, &environment);
        return explain(&program.lossy(), &program.0, &error, argv, env);
    }
    search(program, argv, env, &arguments, &environment)
}

fn search(
    program: &ByteString,
    argv: &[ByteString],
    env: &[ByteString],
    arguments: &[CString],
    environment: &[CString],
) -> String {
    let path = env.iter().find_map(|entry| value(entry, "PATH"));
    let path = path.unwrap_or(DEFAULT_PATH);
    let mut refused = None;
    for directory in path.split(|byte| *byte == b':') {
        // An empty entry is the working directory.
        let directory = if directory.is_empty() {
            b"."
        } else {
            directory
        };
        let candidate = [directory, b"/", &program.0].concat();
        let error = attempt(&candidate, arguments, environment);
        match error.kind() {
            ErrorKind::NotFound if !exists(&candidate) => {}
            ErrorKind::NotADirectory => {}
            ErrorKind::PermissionDenied => refused = Some((candidate, error)),
            _ => {
                let shown = String::from_utf8_lossy(&candidate).into_owned();
                return explain(&shown, &candidate, &error, argv, env);
            }
        }
    }
    match refused {
        Some((candidate, error)) => {
            let shown = String::from_utf8_lossy(&candidate).into_owned();
            explain(&shown, &candidate, &error, argv, env)
        }
        None => format!(
            "{}: not found in PATH {} (exit code 127)",
            program.lossy(),
            String::from_utf8_lossy(path)
        ),
    }
}

/// As `execvp`, hands a script without `#!` to the shell.
fn attempt(program: &[u8], arguments: &[CString], environment: &[CString]) -> Error {
    let Ok(path) = CString::new(program) else {
        return Error::from(ErrorKind::InvalidInput);
    };
    let error = execve(&path, arguments, environment);
    if error.raw_os_error() == Some(libc::ENOEXEC) {
        let mut shell = vec![c"/bin/sh".to_owned(), path];
        shell.extend(arguments.iter().skip(1).cloned());
        return execve(c"/bin/sh", &shell, environment);
    }
    error
}

fn exists(path: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path))
        .symlink_metadata()
        .is_ok()
}

fn explain(
    shown: &str,
    path: &[u8],
    error: &Error,
    argv: &[ByteString],
    env: &[ByteString],
) -> String {
    match error.kind() {
        ErrorKind::NotFound if exists(path) => {
            format!("{shown}: its interpreter or loader was not found (exit code 127)")
        }
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            format!("{shown}: {error} (exit code 127)")
        }
        ErrorKind::ArgumentListTooLong => {
            let longest = argv.iter().chain(env).map(|entry| entry.0.len()).max();
            let sum: usize = argv.iter().chain(env).map(|entry| entry.0.len() + 1).sum();
            format!(
                "{shown}: arguments and environment are too long: {sum} bytes in all, the longest \
                 one {} bytes; Linux takes {MAX_ARGUMENT} bytes for one and a quarter of the \
                 stack limit in all (exit code 126)",
                longest.unwrap_or(0)
            )
        }
        _ => format!("{shown}: {error} (exit code 126)"),
    }
}
