//! Capturing what the command needs to run as if the user had started it here and now.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use aegis_common::abi::env;
use aegis_common::bytes::ByteString;
use aegis_common::wire::{ErrorCode, Failure, Launch};
use rustix::fs::Mode;

use super::error::hinted;
use super::program;

/// Set per job by the keeper. Submitting from inside a job must not hand that job's secret on.
const NOT_INHERITED: [&str; 4] = [env::SHIM_SOCKET, env::JOB_TOKEN, env::JOB_ID, env::ATTEMPT];

/// The command with this process's directory, environment and umask.
pub(super) fn capture(argv: Vec<OsString>) -> Result<Launch, Failure> {
    let Some(program) = argv.first().filter(|program| !program.is_empty()) else {
        return Err(hinted(
            ErrorCode::BadRequest,
            "there is no command to run",
            "write it after --: aegis submit -- python train.py",
        ));
    };
    let cwd = current_dir()?;
    program::check(program, std::env::var_os("PATH").as_deref(), &cwd)?;
    Ok(Launch {
        argv: argv.into_iter().map(ByteString::from).collect(),
        cwd: ByteString(cwd.into_os_string().into_vec()),
        env: environment(std::env::vars_os()),
        umask: umask(),
    })
}

/// The physical working directory.
fn current_dir() -> Result<PathBuf, Failure> {
    let gone = |what: String| {
        hinted(
            ErrorCode::BadRequest,
            what,
            "change to an existing directory (cd .. or cd \"$PWD\") and submit again",
        )
    };
    match std::env::current_dir() {
        // Linux answers "(unreachable)/…" for a directory outside this process's root.
        Ok(path) if path.is_absolute() => Ok(path),
        Ok(path) => Err(gone(format!(
            "the working directory {} cannot be reached from here",
            path.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(gone("the working directory no longer exists".to_owned()))
        }
        Err(error) => Err(gone(format!(
            "the working directory is not accessible: {error}"
        ))),
    }
}

fn environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<ByteString> {
    variables
        .filter(|(key, _)| !NOT_INHERITED.iter().any(|name| key == OsStr::new(name)))
        .map(|(key, value)| {
            let mut pair = key.into_vec();
            pair.push(b'=');
            pair.extend_from_slice(value.as_bytes());
            ByteString(pair)
        })
        .collect()
}

/// This process's umask. It can only be read by setting it; nothing else runs here meanwhile.
fn umask() -> u32 {
    let mask = rustix::process::umask(Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    mask.as_raw_mode()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_environment_are_byte_exact() {
        let odd = OsString::from_vec(b"a\xff \x1b\n'\"$(x)".to_vec());
        let launch = capture(vec!["sh".into(), odd.clone()]).unwrap();
        assert_eq!(
            launch.argv,
            [ByteString::from("sh"), ByteString::from(odd.clone())]
        );
        assert!(launch.cwd.0.starts_with(b"/"));
        let pairs = environment([("K".into(), odd)].into_iter());
        assert_eq!(pairs, [ByteString(b"K=a\xff \x1b\n'\"$(x)".to_vec())]);
    }

    #[test]
    fn a_jobs_secret_is_not_handed_on() {
        let pairs = environment(
            ["AEGIS_JOB_TOKEN", "AEGIS_SHIM_SOCKET", "AEGIS_SHIM_DISABLE"]
                .map(|key| (key.into(), "1".into()))
                .into_iter(),
        );
        assert_eq!(pairs, [ByteString::from("AEGIS_SHIM_DISABLE=1")]);
    }

    #[test]
    fn an_empty_command_is_refused_with_an_example() {
        for argv in [vec![], vec![OsString::new()]] {
            let failure = capture(argv).unwrap_err();
            assert_eq!(failure.code, ErrorCode::BadRequest);
            assert!(failure.hint.unwrap().contains("aegis submit -- "));
        }
    }
}
