//! The blocking connection to the daemon.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aegis_common::wire::{ErrorCode, Failure, PROTOCOL, Request, Response};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::error::{failure, hinted};
use super::frame::{self, FrameError};
use super::socket::start_hint;

/// A daemon that is alive answers anything but `wait` and `cancel` within this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// A greeted connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    socket: PathBuf,
    /// The daemon's version.
    pub version: String,
}

impl Client {
    /// Connects and greets.
    pub(super) fn connect(socket: &Path) -> Result<Self, Failure> {
        let stream = open(socket).map_err(|error| unreachable(socket, &error))?;
        let mut client = Self {
            stream,
            socket: socket.to_owned(),
            version: String::new(),
        };
        let own = env!("CARGO_PKG_VERSION");
        let hello = Request::Hello {
            protocol: PROTOCOL,
            version: own.to_owned(),
        };
        match client.ask(&hello)? {
            Response::Hello { protocol, version } if protocol == PROTOCOL => {
                client.version = version;
                Ok(client)
            }
            Response::Hello { protocol, version } => Err(hinted(
                ErrorCode::Incompatible,
                format!(
                    "aegisd {version} speaks protocol {protocol}, aegis {own} speaks {PROTOCOL}"
                ),
                "install aegis and aegisd of the same version; running jobs survive a restart of aegisd",
            )),
            _ => Err(failure(
                ErrorCode::Incompatible,
                format!("{} does not answer like aegisd", socket.display()),
            )),
        }
    }

    /// Sends a request and reads its answer; a refusal is an error.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Response, Failure> {
        self.send(request)?;
        self.receive()
    }

    /// Sends a request whose answer is read later by [`Client::receive`].
    pub(super) fn send(&mut self, request: &Request) -> Result<(), Failure> {
        let endless = matches!(
            request,
            Request::Wait { .. } | Request::WaitAttempt { .. } | Request::Cancel { .. }
        );
        self.stream
            .set_read_timeout((!endless).then_some(PATIENCE))
            .map_err(|error| self.broken(FrameError::Io(error)))?;
        match frame::write(&mut self.stream, request) {
            // A daemon that refuses a peer may answer and close before it reads: the answer says more.
            Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(self.broken(error)),
            Ok(()) => Ok(()),
        }
    }

    /// Reads the answer to the oldest request without one; a refusal is an error.
    pub(super) fn receive(&mut self) -> Result<Response, Failure> {
        match frame::read(&mut self.stream) {
            Ok(Response::Failed(failure)) => Err(failure),
            Ok(response) => Ok(response),
            Err(error) => Err(self.broken(error)),
        }
    }

    fn broken(&self, error: FrameError) -> Failure {
        let socket = self.socket.display();
        match error {
            FrameError::TooLong(bytes) => hinted(
                ErrorCode::BadRequest,
                format!("the message has {bytes} bytes: arguments and environment are too large"),
                "pass large data in a file",
            ),
            FrameError::Garbage(error) => failure(
                ErrorCode::Incompatible,
                format!("{socket} sent something that is not an answer of aegisd: {error}"),
            ),
            FrameError::Io(error) if timed_out(&error) => hinted(
                ErrorCode::Unreachable,
                format!(
                    "aegisd at {socket} did not answer within {} s",
                    PATIENCE.as_secs()
                ),
                "the request may still have been carried out: see `aegis queue`",
            ),
            error => hinted(
                ErrorCode::Unreachable,
                format!("lost the connection to aegisd at {socket}: {error}"),
                "jobs go on without the daemon; try again when it is back",
            ),
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Opens the stream. A full backlog of a daemon that hangs must not hang us too, so the timeout is
/// set before connecting, which the standard library cannot.
fn open(socket: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let fd = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    set_socket_timeout(&fd, Timeout::Send, Some(PATIENCE))?;
    rustix::net::connect(&fd, &address)?;
    Ok(fd.into())
}

fn timed_out(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn unreachable(socket: &Path, error: &io::Error) -> Failure {
    let path = socket.display();
    let (code, message) = match error.kind() {
        io::ErrorKind::NotFound => (
            ErrorCode::Unreachable,
            format!("aegisd is not running: there is no socket {path}"),
        ),
        io::ErrorKind::ConnectionRefused => (
            ErrorCode::Unreachable,
            format!("aegisd is not running: nobody listens at {path}"),
        ),
        io::ErrorKind::PermissionDenied => (
            ErrorCode::Forbidden,
            format!("you may not connect to {path}: it belongs to another user's daemon"),
        ),
        _ if timed_out(error) => (
            ErrorCode::Unreachable,
            format!("aegisd at {path} does not accept connections"),
        ),
        _ => (
            ErrorCode::Unreachable,
            format!("cannot connect to {path}: {error}"),
        ),
    };
    hinted(code, message, start_hint())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Daemon;
    use super::*;

    fn code(result: Result<Client, Failure>) -> (ErrorCode, String) {
        let failure = result.unwrap_err();
        (failure.code, failure.message)
    }

    #[test]
    fn requests_are_answered_in_order() {
        let daemon = Daemon::answering(|request| match request {
            Request::Gpus => Response::Gpus { gpus: vec![] },
            _ => Response::Failed(failure(ErrorCode::NotFound, "no such job")),
        });
        let mut client = Client::connect(&daemon.socket).unwrap();
        assert_eq!(
            client.ask(&Request::Gpus).unwrap(),
            Response::Gpus { gpus: vec![] }
        );
        assert_eq!(
            client.ask(&Request::Doctor).unwrap_err().code,
            ErrorCode::NotFound
        );
    }

    #[test]
    fn nobody_there_is_said_with_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let failure = Client::connect(&dir.path().join("s")).unwrap_err();
        assert_eq!(failure.code, ErrorCode::Unreachable);
        assert!(failure.hint.unwrap().contains("systemctl"));
        let stale = dir.path().join("stale");
        drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
        let (_, message) = code(Client::connect(&stale));
        assert!(message.contains("nobody listens"), "{message}");
    }

    #[test]
    fn another_protocol_is_named() {
        let daemon = Daemon::scripted(|stream| {
            let _: Request = frame::read(stream).unwrap();
            let hello = Response::Hello {
                protocol: 99,
                version: "9.9".into(),
            };
            frame::write(stream, &hello).unwrap();
        });
        let (code, message) = code(Client::connect(&daemon.socket));
        assert_eq!(code, ErrorCode::Incompatible);
        assert!(
            message.contains("9.9") && message.contains("99"),
            "{message}"
        );
    }

    #[test]
    fn garbage_oversize_and_early_close_are_errors() {
        use std::io::Write;
        let cases: [(&[u8], ErrorCode); 5] = [
            (b"", ErrorCode::Unreachable),
            (b"\0\0", ErrorCode::Unreachable),
            (b"\0\0\0\x09{\"resp", ErrorCode::Unreachable),
            (b"\0\0\0\x03xyz", ErrorCode::Incompatible),
            (b"HTTP/1.1 400 Bad", ErrorCode::BadRequest),
        ];
        for (bytes, expected) in cases {
            let daemon = Daemon::scripted(move |stream| {
                let _: Request = frame::read(stream).unwrap();
                stream.write_all(bytes).unwrap();
            });
            assert_eq!(
                code(Client::connect(&daemon.socket)).0,
                expected,
                "{bytes:?}"
            );
        }
    }
}
