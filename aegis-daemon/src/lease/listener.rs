//! Opening the shim socket where no other daemon listens.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

/// Longest path of a Unix socket in bytes (`sun_path` less its terminator).
const PATH_MAX: usize = 107;
/// Connections the kernel queues; it caps this at `net.core.somaxconn`.
const BACKLOG: i32 = 1024;

/// The listening socket and its name.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: OwnedFd,
    pub(super) file: SocketFile,
}

/// The socket's file. Dropping it removes the file, if it is still this socket's.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    /// Locked while the listener lives; the kernel unlocks it however the daemon dies.
    _lock: File,
}

impl Listener {
    /// # Errors
    ///
    /// `AddrInUse` if another daemon listens at `path`, `InvalidInput` if the path is too long for
    /// a socket, `AlreadyExists` if something other than a socket is there; else whatever the
    /// kernel reports.
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        let length = path.as_os_str().len();
        if length > PATH_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{}: {length} bytes, but a Unix socket's path has at most {PATH_MAX}; \
                     choose a shorter runtime directory",
                    path.display()
                ),
            ));
        }
        let lock = lock(path)?;
        remove_dead(path)?;
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        // Until `listen` nobody can connect, so no process meets the narrower mode.
        fs::set_permissions(path, Permissions::from_mode(0o666))?;
        let metadata = fs::symlink_metadata(path)?;
        listen(&socket, BACKLOG)?;
        Ok(Self {
            socket,
            file: SocketFile {
                path: path.to_owned(),
                identity: (metadata.dev(), metadata.ino()),
                _lock: lock,
            },
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity);
        if ours {
            // Left behind, it would be taken for a dead daemon's and replaced.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Two daemons starting at once must not both find a dead socket.
fn lock(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&name)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        if error == rustix::io::Errno::WOULDBLOCK {
            in_use(path)
        } else {
            error.into()
        }
    })?;
    Ok(file)
}

/// Removes a socket file nobody listens on.
fn remove_dead(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} exists and is not a socket", path.display()),
            ));
        }
        Ok(_) => {}
    }
    let probe = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    match connect(&probe, &SocketAddrUnix::new(path)?) {
        Err(rustix::io::Errno::CONNREFUSED) => fs::remove_file(path),
        // PROTOTYPE: somebody's socket of another type.
        Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::PROTOTYPE) => Err(in_use(path)),
        Err(error) => Err(error.into()),
    }
}

fn in_use(path: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::AddrInUse,
        format!("another daemon listens at {}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(result: io::Result<Listener>) -> io::ErrorKind {
        result.unwrap_err().kind()
    }

    #[test]
    fn the_living_are_respected_and_the_dead_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shim.sock");
        let first = Listener::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o666);
        assert_eq!(kind(Listener::bind(&path)), io::ErrorKind::AddrInUse);

        // A daemon that lost its lock file is still alive.
        fs::remove_file(dir.path().join("shim.sock.lock")).unwrap();
        assert_eq!(kind(Listener::bind(&path)), io::ErrorKind::AddrInUse);

        // A killed daemon leaves its file behind.
        let kept = dir.path().join("kept");
        fs::hard_link(&path, &kept).unwrap();
        drop(first);
        assert!(!path.exists());
        fs::rename(&kept, &path).unwrap();
        let _second = Listener::bind(&path).unwrap();
    }

    #[test]
    fn what_is_no_socket_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        fs::write(&path, "data").unwrap();
        assert_eq!(kind(Listener::bind(&path)), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"data");
        let long = dir.path().join("x".repeat(120));
        assert_eq!(kind(Listener::bind(&long)), io::ErrorKind::InvalidInput);
    }
}
