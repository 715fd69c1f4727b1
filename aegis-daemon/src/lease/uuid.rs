//! GPU UUIDs as text, the way NVML prints them.

use aegis_common::abi::GpuUuid;

/// `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` in lower case.
#[must_use]
pub fn format(uuid: &GpuUuid) -> String {
    let mut text = String::with_capacity(40);
    text.push_str("GPU");
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Reads NVML's text; `MIG-` UUIDs of drivers since 470 have the same form.
#[must_use]
pub fn parse(text: &str) -> Option<GpuUuid> {
    let digits = text
        .strip_prefix("GPU-")
        .or_else(|| text.strip_prefix("MIG-"))?;
    let groups: Vec<&str> = digits.split('-').collect();
    if !groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) {
        return None;
    }
    let mut nibbles = groups.iter().flat_map(|group| group.chars()).map(|digit| {
        digit
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    });
    let mut uuid = GpuUuid::default();
    for byte in &mut uuid {
        *byte = nibbles.next()?? << 4 | nibbles.next()??;
    }
    Some(uuid)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn uuids_survive(uuid: [u8; 16]) {
            prop_assert_eq!(parse(&format(&uuid)), Some(uuid));
        }

        #[test]
        fn any_text_is_read_without_panic(text: String) {
            let _ = parse(&text);
        }
    }

    #[test]
    fn bytes_are_in_reading_order() {
        let text = "GPU-00112233-4455-6677-8899-aabbccddeeff";
        let uuid = parse(text).unwrap();
        assert_eq!(uuid[..4], [0x00, 0x11, 0x22, 0x33]);
        assert_eq!(uuid[15], 0xff);
        assert_eq!(format(&uuid), text);
        assert_eq!(parse("GPU-0011223-34455-6677-8899-aabbccddeeff"), None);
        assert_eq!(parse("GPU-00112233-4455-6677-8899-aabbccddeefg"), None);
    }
}
