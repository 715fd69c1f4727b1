//! Shim messages: whatever arrives, reading it never fails otherwise than by `None`.

use aegis_common::abi::message::{ANSWER_BYTES, Answer, Op, REQUEST_BYTES, Request, Verdict};
use proptest::prelude::*;

fn request() -> impl Strategy<Value = Request> {
    let op = prop_oneof![
        Just(Op::Hello),
        Just(Op::Grow),
        Just(Op::FirstLaunch),
        Just(Op::Refused)
    ];
    (
        op,
        any::<[u8; 32]>(),
        any::<[u8; 16]>(),
        any::<(u64, u64, u32, u32)>(),
    )
        .prop_map(
            |(op, token, gpu, (bytes, held, try_number, abi_minor))| Request {
                gpu,
                bytes,
                held,
                try_number,
                abi_minor,
                ..Request::new(op, token)
            },
        )
}

proptest! {
    #[test]
    fn requests_survive_the_socket(request in request()) {
        prop_assert_eq!(Request::from_bytes(&request.to_bytes()), Some(request));
    }

    #[test]
    fn answers_survive_the_socket(wait_ms: u32, limit: u64, verdict in 1u32..=5) {
        let verdict = Verdict::from_number(verdict).unwrap();
        let answer = Answer { verdict, wait_ms, limit };
        prop_assert_eq!(Answer::from_bytes(&answer.to_bytes()), Some(answer));
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_read(
        bytes in proptest::collection::vec(any::<u8>(), 0..2 * REQUEST_BYTES),
    ) {
        // Without the magic number nothing is read.
        prop_assert_eq!(Request::from_bytes(&bytes), None);
        prop_assert_eq!(Answer::from_bytes(&bytes), None);
    }

    #[test]
    fn damaged_requests_are_refused_or_read(
        request in request(), at in 0..REQUEST_BYTES, byte: u8, length in 0..=REQUEST_BYTES,
    ) {
        let mut packet = request.to_bytes();
        packet[at] = byte;
        let read = Request::from_bytes(&packet);
        prop_assert!(read.is_some() || at < 20, "only magic and operation can spoil a packet");
        let truncated = Request::from_bytes(&packet[..length]);
        prop_assert!(truncated.is_none() || length == REQUEST_BYTES);
    }
}

#[test]
fn an_answer_of_another_version_is_refused() {
    let mut packet = Answer {
        verdict: Verdict::Granted,
        wait_ms: 0,
        limit: 1,
    }
    .to_bytes();
    packet[8] ^= 1;
    assert_eq!(Answer::from_bytes(&packet), None);
    assert_eq!(packet.len(), ANSWER_BYTES);
}
