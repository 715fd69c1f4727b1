//! Bytes of the ring buffer → what they say.

use aegis_common::abi::lifecycle::{FLAG_OOM, FLAG_SENDER, Record};
use aegis_common::id::ProcessKey;
use aegis_common::job::Exit;

use super::Sender;

/// Nanoseconds of one tick of `/proc/PID/stat`: `USER_HZ` is 100 on every architecture here.
pub(super) const TICK_NS: u64 = 10_000_000;
/// Bits of a wait status that are a signal; the next one says that a core was dumped.
const SIGNAL: u32 = 0x7f;

/// Reads one record; `None` unless it has a record's size.
pub(super) fn parse(bytes: &[u8]) -> Option<Record> {
    if bytes.len() != size_of::<Record>() {
        return None;
    }
    let word =
        |at: usize| -> Option<u32> { Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?)) };
    let long =
        |at: usize| -> Option<u64> { Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?)) };
    Some(Record {
        kind: word(0)?,
        pid: word(4)?,
        start_ns: long(8)?,
        root: long(16)?,
        parent: word(24)?,
        status: word(28)?,
        sender: word(32)?,
        sender_uid: word(36)?,
        signal_code: word(40)?.cast_signed(),
        flags: word(44)?,
        comm: *bytes.get(48..)?.first_chunk()?,
    })
}

/// The process's identity as `/proc` tells it.
pub(super) const fn key(pid: u32, start_ns: u64) -> ProcessKey {
    ProcessKey {
        pid,
        start_ticks: start_ns / TICK_NS,
    }
}

/// How it ended.
pub(super) fn exit(record: &Record) -> Exit {
    match i32::try_from(record.status & SIGNAL) {
        Ok(signal) if signal != 0 => Exit::Signal(signal),
        _ => Exit::Code(i32::try_from(record.status >> 8 & 0xff).unwrap_or_default()),
    }
}

/// Who ended it by signal.
pub(super) const fn sender(record: &Record) -> Option<Sender> {
    if record.flags & FLAG_SENDER == 0 {
        None
    } else if record.sender == 0 {
        Some(Sender::Kernel)
    } else {
        Some(Sender::Process {
            pid: record.sender,
            uid: record.sender_uid,
        })
    }
}

/// Whether memory had run out.
pub(super) const fn out_of_memory(record: &Record) -> bool {
    record.flags & FLAG_OOM != 0
}

/// The program's name. It is whatever the process likes.
pub(super) fn command(record: &Record) -> String {
    let name = record.comm.split(|byte| *byte == 0).next();
    String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_and_signals_are_told_apart() {
        let with = |status| Record {
            status,
            ..Record::default()
        };
        assert_eq!(exit(&with(0)), Exit::Code(0));
        assert_eq!(exit(&with(7 << 8)), Exit::Code(7));
        assert_eq!(exit(&with(9)), Exit::Signal(9));
        // With a core dump.
        assert_eq!(exit(&with(0x80 | 11)), Exit::Signal(11));
    }

    #[test]
    fn every_field_is_read_from_its_place() {
        let mut bytes = [0_u8; 64];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::try_from(at).unwrap();
        }
        let record = parse(&bytes).unwrap();
        assert_eq!(record.pid, u32::from_ne_bytes([4, 5, 6, 7]));
        assert_eq!(record.flags, u32::from_ne_bytes([44, 45, 46, 47]));
        assert_eq!(record.comm[15], 63);
        assert_eq!(parse(&bytes[1..]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(record) = parse(&bytes) {
                let _ = (exit(&record), sender(&record));
                prop_assert!(command(&record).chars().count() <= 16);
            }
        }
    }
}
