//! Sizes on the command line and in messages.

use bytesize::ByteSize;

/// Bytes in a mebibyte.
pub const MIB: u64 = 1 << 20;
/// Bytes in a gibibyte.
pub const GIB: u64 = 1 << 30;

/// Parses `2GiB`, `512MiB`, `1.5 GiB` or plain bytes.
///
/// # Errors
/// A sentence with an example, for clap to show next to the option's name.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    text.parse::<ByteSize>()
        .map(|size| size.as_u64())
        .map_err(|_| format!("`{text}` is no size; write for instance 512MiB, 2GiB or 1048576"))
}

/// Parses a share of the GPU between 0 and 1.
///
/// # Errors
/// A sentence with the bounds.
pub fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!(
            "`{text}` is no share; write a number from 0 to 1, for instance 0.65"
        )),
    }
}

/// Parses a duration in seconds, at most a day.
///
/// # Errors
/// A sentence with the bounds.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err(format!(
            "`{text}` is no duration; write seconds from 0 to 86400, for instance 1.5"
        )),
    }
}

/// Bytes as PyTorch prints them: two decimals, the largest unit of GiB, MiB, KiB that gives at least 1.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
pub fn human(bytes: u64) -> String {
    let value = bytes as f64;
    if bytes >= GIB {
        format!("{:.2} GiB", value / GIB as f64)
    } else if bytes >= MIB {
        format!("{:.2} MiB", value / MIB as f64)
    } else if bytes >= 1024 {
        format!("{:.2} KiB", value / 1024.0)
    } else {
        format!("{bytes} bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_where_written_so() {
        assert_eq!(parse_bytes("2GiB"), Ok(2 * GIB));
        assert_eq!(parse_bytes("512MiB"), Ok(512 * MIB));
        assert_eq!(parse_bytes("1048576"), Ok(MIB));
        assert!(parse_bytes("lots").unwrap_err().contains("512MiB"));
        assert!(parse_bytes("-1").is_err());
    }

    #[test]
    fn shares_and_seconds_have_bounds() {
        assert_eq!(parse_share("0.65"), Ok(0.65));
        for bad in ["1.01", "-0.1", "nan", "inf", "much"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
        assert!(parse_seconds("nan").is_err());
        assert!(parse_seconds("86401").is_err());
    }

    #[test]
    fn human_uses_the_largest_fitting_unit() {
        assert_eq!(human(3 * GIB / 2), "1.50 GiB");
        assert_eq!(human(20 * MIB), "20.00 MiB");
        assert_eq!(human(2048), "2.00 KiB");
        assert_eq!(human(3), "3 bytes");
    }
}
