//! Identities as NVML writes them.
#![forbid(unsafe_code)]

use aegis_common::abi::GpuUuid;

/// Reads `GPU-` or `MIG-` and a UUID in text form. `None`: something else, such as the older
/// `MIG-GPU-…/7/0`.
#[must_use]
pub fn parse(text: &[u8]) -> Option<GpuUuid> {
    let digits = text
        .strip_prefix(b"GPU-")
        .or_else(|| text.strip_prefix(b"MIG-"))?;
    let mut uuid = [0; 16];
    let mut count = 0;
    for (at, byte) in digits.iter().enumerate() {
        if matches!(at, 8 | 13 | 18 | 23) {
            if *byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = char::from(*byte).to_digit(16)?;
        let slot = uuid.get_mut(count / 2)?;
        *slot = *slot << 4 | digit as u8;
        count += 1;
    }
    (count == 32).then_some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_gpus_and_mig_instances() {
        let expected = [
            0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54,
            0x32, 0x10,
        ];
        for text in [
            "GPU-01234567-89ab-cdef-fedc-ba9876543210",
            "MIG-01234567-89AB-cdef-fedc-ba9876543210",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(expected));
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "GPU-",
            "GPU-01234567-89ab-cdef-fedc-ba987654321",
            "GPU-01234567-89ab-cdef-fedc-ba98765432100",
            "GPU-01234567089ab-cdef-fedc-ba9876543210",
            "GPU-0123456x-89ab-cdef-fedc-ba9876543210",
            "MIG-GPU-01234567-89ab-cdef-fedc-ba9876543210/7/0",
            "01234567-89ab-cdef-fedc-ba9876543210",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }
}
