//! Where things are, so that daemon and command line agree.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The client socket's name in the runtime directory.
pub const SOCKET_NAME: &str = "aegis.sock";
/// The shim socket's name in the runtime directory.
pub const SHIM_SOCKET_NAME: &str = "shim.sock";
/// The shim's library.
pub const SHIM_LIBRARY: &str = "libaegis_shim.so";
/// Longest path of a Unix socket in bytes: `sun_path` has 108 including the final NUL (unix(7)).
pub const SOCKET_PATH_MAX: usize = 107;

/// The usual files and directories of a mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The configuration file.
    pub config_file: PathBuf,
    /// Journal, job records, logs.
    pub state_dir: PathBuf,
    /// Sockets, ledgers, lease pages.
    pub runtime_dir: PathBuf,
}

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathsError {
    /// Neither the environment nor the user database tells the home directory.
    #[error(
        "the home directory of uid {uid} is unknown; set HOME, or XDG_CONFIG_HOME and XDG_STATE_HOME"
    )]
    NoHome {
        /// The user.
        uid: u32,
    },
    /// A socket path is too long for the kernel.
    #[error("the socket path {} has {} bytes, the kernel allows {SOCKET_PATH_MAX}; choose a shorter directory", path.display(), path.as_os_str().len())]
    SocketTooLong {
        /// The path.
        path: PathBuf,
    },
    /// A private directory is not private.
    #[error("{} {problem}; remove it or set XDG_RUNTIME_DIR", path.display())]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Paths {
    /// A root daemon's.
    #[must_use]
    pub fn root() -> Self {
        Self {
            config_file: "/etc/aegis/aegis.toml".into(),
            state_dir: "/var/lib/aegis".into(),
            runtime_dir: "/run/aegis".into(),
        }
    }

    /// A rootless daemon's, by the environment `env` of user `uid`.
    ///
    /// # Errors
    /// [`PathsError::NoHome`], [`PathsError::SocketTooLong`].
    pub fn rootless(env: impl Fn(&str) -> Option<OsString>, uid: u32) -> Result<Self, PathsError> {
        // The XDG specification: a path that is not absolute is to be ignored.
        let absolute = |name: &str| {
            env(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let home = || {
            absolute("HOME")
                .or_else(|| {
                    uzers::get_user_by_uid(uid).map(|user| {
                        use uzers::os::unix::UserExt;
                        user.home_dir().to_owned()
                    })
                })
                .ok_or(PathsError::NoHome { uid })
        };
        let config = match absolute("XDG_CONFIG_HOME") {
            Some(path) => path,
            None => home()?.join(".config"),
        };
        let state = match absolute("XDG_STATE_HOME") {
            Some(path) => path,
            None => home()?.join(".local/state"),
        };
        let paths = Self {
            config_file: config.join("aegis/aegis.toml"),
            state_dir: state.join("aegis"),
            runtime_dir: rootless_runtime_dir(&env, uid),
        };
        check_socket(&paths.runtime_dir.join(SOCKET_NAME))?;
        Ok(paths)
    }

    /// The mode's, by this process's environment and effective uid.
    ///
    /// # Errors
    /// As [`Paths::rootless`].
    pub fn for_mode(rootless: bool) -> Result<Self, PathsError> {
        if rootless {
            Self::rootless(|name| std::env::var_os(name), current_uid())
        } else {
            Ok(Self::root())
        }
    }
}

/// `$XDG_RUNTIME_DIR/aegis`, else `/tmp/aegis-UID`.
#[must_use]
pub fn rootless_runtime_dir(env: impl Fn(&str) -> Option<OsString>, uid: u32) -> PathBuf {
    env("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .map_or_else(
            || PathBuf::from(format!("/tmp/aegis-{uid}")),
            |path| path.join("aegis"),
        )
}

/// The effective uid.
#[must_use]
pub fn current_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a Unix socket can be bound to or reached at `path`.
///
/// # Errors
/// [`PathsError::SocketTooLong`].
pub fn check_socket(path: &Path) -> Result<(), PathsError> {
    if path.as_os_str().len() > SOCKET_PATH_MAX {
        return Err(PathsError::SocketTooLong {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// Creates `path` with mode 0700 if it is missing (parents too), and checks it.
///
/// # Errors
/// As [`check_private_dir`].
pub fn create_private_dir(path: &Path) -> Result<(), PathsError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| PathsError::Io {
            path: path.to_owned(),
            source,
        })?;
    check_private_dir(path)
}

/// Checks that `path` is a directory of ours that nobody else can enter: in `/tmp` somebody else
/// may have made it first.
///
/// # Errors
/// [`PathsError::NotPrivate`], [`PathsError::Io`].
pub fn check_private_dir(path: &Path) -> Result<(), PathsError> {
    let meta = std::fs::symlink_metadata(path).map_err(|source| PathsError::Io {
        path: path.to_owned(),
        source,
    })?;
    let problem = if !meta.is_dir() {
        "is not a directory".to_owned()
    } else if meta.uid() != current_uid() {
        format!("belongs to uid {}", meta.uid())
    } else if meta.mode() & 0o077 != 0 {
        format!("has mode {:04o} instead of 0700", meta.mode() & 0o7777)
    } else {
        return Ok(());
    };
    Err(PathsError::NotPrivate {
        path: path.to_owned(),
        problem,
    })
}

/// Whether LD_PRELOAD can name `path`: it separates names by spaces and colons (ld.so(8)).
#[must_use]
pub fn can_preload(path: &Path) -> bool {
    !path
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|byte| matches!(byte, b' ' | b':' | b'\t' | b'\n'))
}

/// Where the shim is looked for if the configuration does not name it: beside the running
/// program, then in `../lib/aegis`, `/usr/local/lib/aegis` and `/usr/lib/aegis`.
#[must_use]
pub fn shim_candidates() -> Vec<PathBuf> {
    let mut candidates = Vec::new();
    if let Some(dir) = std::env::current_exe()
        .ok()
        .as_deref()
        .and_then(Path::parent)
    {
        candidates.push(dir.join(SHIM_LIBRARY));
        if let Some(prefix) = dir.parent() {
            candidates.push(prefix.join("lib/aegis").join(SHIM_LIBRARY));
        }
    }
    candidates.push(Path::new("/usr/local/lib/aegis").join(SHIM_LIBRARY));
    candidates.push(Path::new("/usr/lib/aegis").join(SHIM_LIBRARY));
    candidates
}

/// The first of [`shim_candidates`] that exists.
#[must_use]
pub fn find_shim() -> Option<PathBuf> {
    shim_candidates().into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        |name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value))
        }
    }

    #[test]
    fn xdg_directories_win_over_home() {
        let paths = Paths::rootless(
            env(&[
                ("HOME", "/home/ana"),
                ("XDG_CONFIG_HOME", "/cfg"),
                ("XDG_STATE_HOME", "relative/is/ignored"),
                ("XDG_RUNTIME_DIR", "/run/user/7"),
            ]),
            7,
        )
        .unwrap();
        assert_eq!(paths.config_file, Path::new("/cfg/aegis/aegis.toml"));
        assert_eq!(paths.state_dir, Path::new("/home/ana/.local/state/aegis"));
        assert_eq!(paths.runtime_dir, Path::new("/run/user/7/aegis"));
    }

    #[test]
    fn without_a_runtime_directory_tmp_serves() {
        assert_eq!(
            rootless_runtime_dir(env(&[]), 1001),
            Path::new("/tmp/aegis-1001")
        );
    }

    #[test]
    fn a_long_socket_path_is_refused_with_its_length() {
        let long = format!("/{}", "x".repeat(100));
        let error = Paths::rootless(env(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", &long)]), 1);
        let text = error.unwrap_err().to_string();
        assert!(text.contains("118 bytes"), "{text}");
        assert!(text.contains("107"), "{text}");
    }

    #[test]
    fn a_directory_others_can_enter_is_not_private() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("a/b");
        create_private_dir(&dir).unwrap();
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
        let text = check_private_dir(&dir).unwrap_err().to_string();
        assert!(text.contains("0755"), "{text}");
        let link = base.path().join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(check_private_dir(&link).is_err());
        assert!(check_private_dir(&base.path().join("missing")).is_err());
    }

    #[test]
    fn a_path_with_a_space_cannot_be_preloaded() {
        assert!(can_preload(Path::new("/usr/lib/x.so")));
        assert!(!can_preload(Path::new("/home/a b/x.so")));
        assert!(!can_preload(Path::new("/a:b/x.so")));
    }
}
