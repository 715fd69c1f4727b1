//! Which daemon to talk to.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use aegis_common::wire::{ErrorCode, Failure};

use super::error::{failure, hinted};
use crate::config::paths::{self, PathsError, SOCKET_NAME};

/// The socket: the given one, else the rootless daemon's if there is one, else the root daemon's.
pub(super) fn find(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let root = paths::Paths::root().runtime_dir;
    choose(
        given,
        |name| std::env::var_os(name),
        paths::current_uid(),
        &root,
    )
}

fn choose(
    given: Option<&Path>,
    env: impl Fn(&str) -> Option<OsString>,
    uid: u32,
    root_dir: &Path,
) -> Result<PathBuf, Failure> {
    let path = match given {
        Some(path) if path.as_os_str().is_empty() => {
            return Err(hinted(
                ErrorCode::BadRequest,
                "the socket path given by --socket or AEGIS_SOCKET is empty",
                "name a path, or leave it out: unset AEGIS_SOCKET",
            ));
        }
        Some(path) => path.to_owned(),
        None => {
            let dir = paths::rootless_runtime_dir(&env, uid);
            let own = dir.join(SOCKET_NAME);
            if own.symlink_metadata().is_ok() {
                // In /tmp somebody else may have put it there to be told our environment.
                paths::check_private_dir(&dir).map_err(|error: PathsError| {
                    hinted(
                        ErrorCode::Forbidden,
                        format!("not connecting to {}: {error}", own.display()),
                        "name the daemon you mean with --socket",
                    )
                })?;
                own
            } else {
                root_dir.join(SOCKET_NAME)
            }
        }
    };
    paths::check_socket(&path)
        .map_err(|error| failure(ErrorCode::BadRequest, error.to_string()))?;
    Ok(path)
}

/// How to start a daemon.
pub(super) fn start_hint() -> String {
    "start it with `systemctl start aegisd` (as root, for all users) or `aegisd --rootless` (for \
     yourself), or name another socket with --socket or AEGIS_SOCKET"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_rootless_socket_comes_before_the_root_one() {
        let base = tempfile::tempdir().unwrap();
        let env = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| base.path().into());
        let root = Path::new("/run/aegis");
        let uid = paths::current_uid();
        let chosen = || choose(None, env, uid, root);
        assert_eq!(chosen().unwrap(), Path::new("/run/aegis/aegis.sock"));

        let dir = base.path().join("aegis");
        paths::create_private_dir(&dir).unwrap();
        let own = dir.join(SOCKET_NAME);
        let _listener = UnixListener::bind(&own).unwrap();
        assert_eq!(chosen().unwrap(), own);
        let given = Path::new("/x/y");
        assert_eq!(choose(Some(given), env, uid, root).unwrap(), given);

        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(chosen().unwrap_err().code, ErrorCode::Forbidden);
    }

    #[test]
    fn a_path_the_kernel_cannot_take_is_refused() {
        let long = PathBuf::from(format!("/{}", "x".repeat(107)));
        let failure = find(Some(&long)).unwrap_err();
        assert!(failure.message.contains("108 bytes"), "{}", failure.message);
        assert_eq!(
            find(Some(Path::new(""))).unwrap_err().code,
            ErrorCode::BadRequest
        );
    }
}
