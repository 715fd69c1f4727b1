//! The protocol between daemon and keeper: one JSON object per `SOCK_SEQPACKET` packet.
//!
//! Versions may differ after an upgrade: readers ignore fields they do not know and answer
//! commands they do not know with [`Report::Unsupported`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aegis_common::id::ProcessKey;
use aegis_common::job::Exit;
use rustix::fs::{Mode, OFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Raised with every incompatible change.
pub(crate) const KEEPER_PROTOCOL: u32 = 1;
/// Longest packet in bytes.
const MAX_PACKET: usize = 64 << 10;

/// What the daemon asks of a keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(crate) enum Command {
    /// Who are you? Answered by [`Report::Hello`].
    Hello { protocol: u32 },
    /// End the tree: SIGTERM, after the grace period SIGKILL.
    Stop { grace_ms: u64 },
    /// Ask the main process to save its state and exit; if it has not done so in time, end the tree
    /// as with [`Command::Stop`]. Repeated while it saves, this does nothing. A keeper that does
    /// not know it yet answers [`Report::Unsupported`].
    Suspend {
        /// Sent to the main process alone.
        signal: i32,
        /// Time to save and exit.
        save_ms: u64,
        /// As in [`Command::Stop`].
        grace_ms: u64,
    },
    /// Keep the descriptor that comes along, under this name.
    Hold { name: String },
    /// Close a held descriptor.
    Release { name: String },
    /// Answered by [`Report::Status`].
    Status,
}

/// What a keeper tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub(crate) enum Report {
    /// The answer to [`Command::Hello`].
    Hello { protocol: u32, version: String },
    /// Nothing ran and nothing will: no start record was made.
    Refused { error: String },
    /// The state disk is full; the keeper tries again.
    Waiting { error: String },
    /// The start record is this keeper's.
    Claimed,
    /// Another keeper has the start record. This one ends.
    Beaten,
    /// The command was executed.
    Running { main: ProcessKey },
    /// The tree is gone and the end record can be read. The keeper itself ends once it is on disk.
    Ended,
    /// The answer to [`Command::Status`].
    Status {
        phase: KeeperPhase,
        exit: Option<Exit>,
        held: Vec<String>,
    },
    /// The answer to an unknown or malformed command.
    Unsupported { error: String },
}

/// How far a keeper is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeeperPhase {
    /// Forked, not yet executed.
    Starting,
    /// The command runs.
    Running,
    /// The tree is being ended.
    Ending,
    /// The tree is gone; the end record is being written.
    Ended,
}

/// Sends one packet, with a descriptor if given. Never blocks, never raises SIGPIPE.
pub(crate) fn send<T: Serialize>(
    socket: impl AsFd,
    message: &T,
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(socket, &[io::IoSlice::new(&bytes)], &mut ancillary, flags)?;
    Ok(())
}

/// A packet and the descriptor that came with it.
#[derive(Debug)]
pub(crate) struct Packet<T> {
    /// The message, or why it cannot be understood.
    pub(crate) message: Result<T, String>,
    pub(crate) descriptor: Option<OwnedFd>,
}

/// Receives one packet; `None` when the other side is gone. Gives `WouldBlock` if there is none
/// yet.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<Packet<T>>> {
    let mut bytes = vec![0; MAX_PACKET];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(
        socket,
        &mut [io::IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        flags,
    )?;
    let descriptor = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .next();
    if received.bytes == 0 {
        return Ok(None);
    }
    bytes.truncate(received.bytes);
    let message = serde_json::from_slice(&bytes).map_err(|error| error.to_string());
    Ok(Some(Packet {
        message,
        descriptor,
    }))
}

/// A connected pair.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Listens in `directory`. Through `/proc/self/fd` the address stays below the 108 bytes it may
/// have, however long the directory's path is.
pub(crate) fn listen(directory: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = unix_socket(flags)?;
    rustix::net::bind(&socket, &address(directory, name)?)?;
    rustix::net::listen(&socket, 16)?;
    Ok(socket)
}

/// Connects to a socket in `directory`.
pub(crate) fn connect(directory: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let socket = unix_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    rustix::net::connect(&socket, &address(directory, name)?)?;
    Ok(socket)
}

/// Opens a directory as the anchor of paths below it.
pub(crate) fn open_directory(path: &std::path::Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn unix_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let family = AddressFamily::UNIX;
    Ok(rustix::net::socket_with(
        family,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

/// Good while `directory` is open: it is borrowed, so that no caller hands over its only copy.
fn address(directory: &OwnedFd, name: &str) -> io::Result<SocketAddrUnix> {
    use std::os::fd::AsRawFd;
    let directory = directory.as_raw_fd();
    Ok(SocketAddrUnix::new(format!(
        "/proc/self/fd/{directory}/{name}"
    ))?)
}

#[cfg(test)]
mod tests {
    use super::{Command, Report, connect, listen, open_directory, pair, receive, send};
    use proptest::prelude::*;
    use std::os::fd::AsFd;

    #[test]
    fn messages_and_descriptors_arrive() {
        let (a, b) = pair().unwrap();
        let hold = Command::Hold {
            name: "ledger".to_owned(),
        };
        send(&a, &hold, Some(a.as_fd())).unwrap();
        let packet = receive::<Command>(&b).unwrap().unwrap();
        assert_eq!(packet.message.unwrap(), hold);
        assert!(packet.descriptor.is_some());
        assert_eq!(
            receive::<Command>(&b).unwrap_err().kind(),
            std::io::ErrorKind::WouldBlock
        );
        drop((a, packet.descriptor));
        assert!(receive::<Command>(&b).unwrap().is_none());
    }

    /// By that word the daemon knows what a keeper from before there was suspension refused.
    #[test]
    fn an_unknown_command_is_named_in_the_refusal() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(tag = "command", rename_all = "snake_case")]
        enum Older {
            Status,
        }
        let suspend = Command::Suspend {
            signal: 10,
            save_ms: 1,
            grace_ms: 1,
        };
        let (a, b) = pair().unwrap();
        send(&a, &suspend, None).unwrap();
        let error = receive::<Older>(&b).unwrap().unwrap().message.unwrap_err();
        assert!(error.contains("suspend"), "{error}");
        send(&a, &Command::Status, None).unwrap();
        let known = receive::<Older>(&b).unwrap().unwrap().message;
        assert!(matches!(known, Ok(Older::Status)));
    }

    #[test]
    fn a_listener_in_a_deep_directory_is_reached() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("x".repeat(200));
        std::fs::create_dir(&deep).unwrap();
        let directory = open_directory(&deep).unwrap();
        let _listener = listen(&directory, "keeper.sock").unwrap();
        connect(&directory, "keeper.sock").unwrap();
    }

    proptest! {
        #[test]
        fn any_packet_is_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
            let (a, b) = pair().unwrap();
            rustix::net::send(&a, &bytes, rustix::net::SendFlags::empty()).unwrap();
            prop_assert!(receive::<Command>(&b).unwrap().unwrap().message.is_err());
            rustix::net::send(&a, &bytes, rustix::net::SendFlags::empty()).unwrap();
            prop_assert!(receive::<Report>(&b).unwrap().unwrap().message.is_err());
        }
    }
}
