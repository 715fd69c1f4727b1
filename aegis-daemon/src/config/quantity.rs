//! Sizes, durations and shares as people write them; used by the file and the command line alike.

use std::time::Duration;

use bytesize::ByteSize;

/// Bytes from `20GiB`, `512MiB`, `1.5TiB`. `G` and `GiB` are 1024³ bytes, `GB` is 1000³.
///
/// # Errors
/// What is wrong and how it is written.
pub fn size(text: &str) -> Result<u64, String> {
    const HOW: &str = "sizes are written like 20GiB, 512MiB or 1.5GiB";
    let text = text.trim();
    let Some(last) = text.chars().next_back() else {
        return Err(format!("the size is empty; {HOW}"));
    };
    if last.is_ascii_digit() {
        return Err(format!("the unit is missing; {HOW}"));
    }
    // GPU memory is counted in powers of two everywhere: a lone letter means those.
    let parsed = if "kKmMgGtTpP".contains(last) {
        format!("{text}iB").parse::<ByteSize>()
    } else {
        text.parse::<ByteSize>()
    };
    match parsed.map(|size| size.as_u64()) {
        // The conversion saturates: a number that is not the one written must not be shown.
        Ok(u64::MAX) => Err("more than 64 bits can count".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(format!("not a size; {HOW}")),
    }
}

/// A duration from `90s`, `4h`, `1h 30m`, `200ms`.
///
/// # Errors
/// What is wrong and how it is written.
pub fn duration(text: &str) -> Result<Duration, String> {
    const HOW: &str = "durations are written like 90s, 30m, 4h or 1h 30m";
    let text = text.trim();
    match humantime::parse_duration(text) {
        Ok(duration) => Ok(duration),
        Err(_) if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) => {
            Err(format!("the unit is missing; {HOW}"))
        }
        Err(_) => Err(format!("not a duration; {HOW}")),
    }
}

/// Thousandths from `55%`, `55 %`, `2.5%`.
///
/// # Errors
/// What is wrong and how it is written.
pub fn share(text: &str) -> Result<u16, String> {
    const HOW: &str = "shares are written like 55% or 2.5%, with at most one decimal";
    let wrong = || format!("not a share; {HOW}");
    let number = text
        .trim()
        .strip_suffix('%')
        .ok_or_else(|| format!("the % is missing; {HOW}"))?
        .trim_end();
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(tenth) || tenth.len() != 1 {
        return Err(wrong());
    }
    let whole: u16 = whole.parse().map_err(|_| wrong())?;
    let tenth: u16 = tenth.parse().map_err(|_| wrong())?;
    whole
        .checked_mul(10)
        .and_then(|thousandths| thousandths.checked_add(tenth))
        .ok_or_else(wrong)
}

/// A size exactly, in the largest unit that leaves no remainder: `5GiB`.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes > 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}

/// A duration exactly: `1h 30m`.
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

/// Thousandths exactly: `55%`, `2.5%`.
#[must_use]
pub fn show_share(thousandths: u16) -> String {
    match thousandths % 10 {
        0 => format!("{}%", thousandths / 10),
        tenth => format!("{}.{tenth}%", thousandths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_lone_letter_is_a_power_of_two() {
        assert_eq!(size("20G").unwrap(), 20 << 30);
        assert_eq!(size("20GiB").unwrap(), 20 << 30);
        assert_eq!(size(" 1.5 GiB ").unwrap(), 3 << 29);
        assert_eq!(size("20GB").unwrap(), 20_000_000_000);
        assert_eq!(size("7B").unwrap(), 7);
    }

    #[test]
    fn a_missing_unit_is_named() {
        assert!(size("20").unwrap_err().contains("unit is missing"));
        assert!(duration("20").unwrap_err().contains("unit is missing"));
        assert!(share("0.55").unwrap_err().contains("% is missing"));
        for text in ["", "x", "-1GiB", "1.2.3GiB", "GiB", "1XiB"] {
            assert!(size(text).is_err(), "{text}");
        }
        for text in ["%", "5.55%", "-1%", ".5%", "5.%", "99999%", "5,5%", "+5%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(bytes: u64, millis in 0_u64..1 << 50, thousandths: u16) {
            prop_assert_eq!(size(&show_size(bytes)).unwrap(), bytes);
            let time = Duration::from_millis(millis);
            prop_assert_eq!(duration(&show_duration(time)).unwrap(), time);
            prop_assert_eq!(share(&show_share(thousandths)).unwrap(), thousandths);
        }

        #[test]
        fn no_text_panics(text in "\\PC*", number in "[0-9.]{0,30} ?[a-zA-Z%]{0,3}") {
            for text in [text, number] {
                let _ = size(&text);
                let _ = duration(&text);
                let _ = share(&text);
            }
        }
    }
}
