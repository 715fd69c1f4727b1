//! The shim socket end to end, with this process in the shim's place.
#![cfg(test)]

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use aegis_common::abi::message::{ANSWER_BYTES, Answer, Op, REQUEST_BYTES, Request, Verdict};
use aegis_common::abi::{ABI_MAJOR, ABI_MINOR};
use aegis_common::id::{JobId, ProcessKey};
use proptest::prelude::*;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, SocketType, connect, recv, recvmsg, send, shutdown, socket_with,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

const TOKEN: Token = *b"0123456789abcdef0123456789abcdef";

struct Fixture {
    _dir: tempfile::TempDir,
    path: PathBuf,
    server: ShimServer,
    events: UnboundedReceiver<ShimEvent>,
}

fn fixture(limits: ShimLimits) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shim.sock");
    let (sender, events) = unbounded_channel();
    let server = ShimServer::bind_with(&path, limits, sender).unwrap();
    Fixture {
        _dir: dir,
        path,
        server,
        events,
    }
}

fn dial(path: &Path) -> OwnedFd {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

fn ask(path: &Path, request: &Request) -> OwnedFd {
    let socket = dial(path);
    send(&socket, &request.to_bytes(), SendFlags::NOSIGNAL).unwrap();
    socket
}

/// Blocks a thread of its own: the server runs on this one.
async fn answered(socket: OwnedFd) -> (Option<Answer>, OwnedFd) {
    tokio::task::spawn_blocking(move || {
        let mut packet = [0; ANSWER_BYTES];
        let (_, len) = recv(&socket, packet.as_mut_slice(), RecvFlags::empty()).unwrap_or((0, 0));
        (Answer::from_bytes(&packet[..len]), socket)
    })
    .await
    .unwrap()
}

fn grow(bytes: u64) -> Request {
    Request {
        gpu: [3; 16],
        bytes,
        held: bytes + 1,
        try_number: 2,
        ..Request::new(Op::Grow, TOKEN)
    }
}

fn this_process() -> ShimPeer {
    let pid = std::process::id();
    let start_ticks = start_ticks(pid).unwrap();
    ShimPeer {
        process: ProcessKey { pid, start_ticks },
        uid: rustix::process::geteuid().as_raw(),
    }
}

#[tokio::test]
async fn a_hello_gets_a_writable_ledger_and_a_read_only_lease() {
    let mut f = fixture(ShimLimits::default());
    let socket = ask(&f.path, &Request::new(Op::Hello, TOKEN));
    let Some(ShimEvent::Hello {
        peer,
        token,
        abi,
        reply,
        ..
    }) = f.events.recv().await
    else {
        panic!("no hello");
    };
    assert_eq!(
        (peer, token, abi),
        (this_process(), TOKEN, (ABI_MAJOR, ABI_MINOR))
    );
    let dir = tempfile::tempdir().unwrap();
    let name = LeaseName {
        job: JobId(1),
        process: peer.process,
    };
    let ledger = LedgerFile::create(&name.ledger()).unwrap();
    let page = LeasePage::create(dir.path(), name).unwrap();
    let lease = page.read_only_fd().unwrap();
    reply.accept(ledger.as_fd(), lease.as_fd()).unwrap();

    let mut packet = [0; ANSWER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(
        &socket,
        &mut [IoSliceMut::new(&mut packet)],
        &mut control,
        flags,
    )
    .unwrap();
    assert_eq!(
        Answer::from_bytes(&packet).unwrap().verdict,
        Verdict::Granted
    );
    let mut received = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            received.extend(fds);
        }
    }
    let [ledger, lease] = <[OwnedFd; 2]>::try_from(received).unwrap();
    rustix::io::pwrite(&ledger, &[1], 4096).unwrap();
    assert!(rustix::io::pwrite(&lease, &[1], 0).is_err());
    assert!(memmap2::MmapRaw::map_raw(&lease).is_err());
}

#[tokio::test]
async fn a_grow_waits_and_is_then_answered() {
    let mut f = fixture(ShimLimits::default());
    let socket = ask(&f.path, &grow(77));
    let Some(ShimEvent::Grow {
        gpu,
        bytes: 77,
        held: 78,
        try_number: 2,
        mut reply,
        ..
    }) = f.events.recv().await
    else {
        panic!("no grow");
    };
    assert_eq!(gpu, [3; 16]);
    reply.wait(u32::MAX).unwrap();
    let (answer, socket) = answered(socket).await;
    let answer = answer.unwrap();
    assert_eq!((answer.verdict, answer.wait_ms), (Verdict::Wait, 20_000));
    reply.grant(500).unwrap();
    let (answer, socket) = answered(socket).await;
    let answer = answer.unwrap();
    assert_eq!((answer.verdict, answer.limit), (Verdict::Granted, 500));
    assert_eq!(answered(socket).await.0, None);
    // Answered is not abandoned.
    let _next = ask(&f.path, &Request::new(Op::FirstLaunch, TOKEN));
    let next = f.events.recv().await;
    assert!(
        matches!(next, Some(ShimEvent::FirstLaunch { .. })),
        "{next:?}"
    );
}

#[tokio::test]
async fn hanging_up_or_talking_on_abandons_a_grow() {
    let mut f = fixture(ShimLimits::default());
    for talk in [false, true] {
        let socket = ask(&f.path, &grow(1));
        let Some(ShimEvent::Grow { request, reply, .. }) = f.events.recv().await else {
            panic!("no grow");
        };
        if talk {
            send(&socket, &grow(2).to_bytes(), SendFlags::NOSIGNAL).unwrap();
        } else {
            drop(socket);
        }
        let Some(ShimEvent::GrowAbandoned { request: abandoned }) = f.events.recv().await else {
            panic!("not abandoned");
        };
        assert_eq!(abandoned, request);
        assert!(reply.grant(1).is_err());
    }
    assert_eq!(f.server.counts().malformed, 1);
}

#[tokio::test]
async fn refusals_and_other_versions_are_told() {
    let mut f = fixture(ShimLimits::default());
    let newer = Request {
        abi_major: 2,
        ..Request::new(Op::Hello, TOKEN)
    };
    let socket = ask(&f.path, &newer);
    let Some(ShimEvent::Hello {
        abi: (2, ABI_MINOR),
        reply,
        ..
    }) = f.events.recv().await
    else {
        panic!("no hello");
    };
    reply.refuse(Verdict::Incompatible);
    assert_eq!(
        answered(socket).await.0.unwrap().verdict,
        Verdict::Incompatible
    );

    let newer = Request {
        abi_major: 2,
        ..grow(1)
    };
    let socket = ask(&f.path, &newer);
    assert_eq!(
        answered(socket).await.0.unwrap().verdict,
        Verdict::Incompatible
    );
    assert!(f.events.try_recv().is_err());
}

#[tokio::test]
async fn garbage_is_dropped_and_counted() {
    let mut f = fixture(ShimLimits::default());
    let valid = grow(1).to_bytes();
    let mut wrong_magic = valid;
    wrong_magic[0] ^= 1;
    let packets: [&[u8]; 5] = [
        &[],
        &valid[..REQUEST_BYTES - 1],
        &[&valid[..], &[0]].concat(),
        &wrong_magic,
        &[0xff; 4000],
    ];
    for packet in packets {
        let socket = dial(&f.path);
        send(&socket, packet, SendFlags::NOSIGNAL).unwrap();
        assert_eq!(answered(socket).await.0, None);
    }
    // Hanging up without a word counts too.
    let silent = dial(&f.path);
    shutdown(&silent, Shutdown::Write).unwrap();
    assert_eq!(answered(silent).await.0, None);
    let _valid = ask(&f.path, &Request::new(Op::Refused, TOKEN));
    let next = f.events.recv().await;
    assert!(matches!(next, Some(ShimEvent::Refused { .. })), "{next:?}");
    let counts = f.server.counts();
    assert_eq!((counts.malformed, counts.requests), (6, 1));
}

#[tokio::test]
async fn a_user_over_its_cap_is_turned_away() {
    let limits = ShimLimits {
        open_per_uid: 1,
        ..ShimLimits::default()
    };
    let mut f = fixture(limits);
    let first = ask(&f.path, &grow(1));
    let Some(ShimEvent::Grow { reply, .. }) = f.events.recv().await else {
        panic!("no grow");
    };
    let second = dial(&f.path);
    assert_eq!(answered(second).await.0, None);
    assert_eq!(f.server.counts().over_cap, 1);
    reply.deny(9).unwrap();
    assert_eq!(answered(first).await.0.unwrap().verdict, Verdict::Denied);
}

proptest! {
    #[test]
    fn any_packet_is_read_without_panic(
        mut packet in proptest::collection::vec(any::<u8>(), 0..REQUEST_BYTES * 2),
        valid: bool,
    ) {
        if valid && packet.len() >= 8 {
            packet[..8].copy_from_slice(&aegis_common::abi::MAGIC.to_ne_bytes());
        }
        if let Some(request) = Request::from_bytes(&packet) {
            prop_assert_eq!(Request::from_bytes(&request.to_bytes()), Some(request));
        }
    }
}
