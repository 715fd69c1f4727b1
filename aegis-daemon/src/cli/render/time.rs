//! Times and durations.

use aegis_common::id::Moment;
use jiff::tz::TimeZone;

/// A duration in its two largest units: `42s`, `12m05s`, `3h12m`, `2d04h`.
pub(in crate::cli) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    if days > 0 {
        format!("{days}d{hours:02}h")
    } else if hours > 0 {
        format!("{hours}h{minutes:02}m")
    } else if minutes > 0 {
        format!("{minutes}m{:02}s", seconds % 60)
    } else {
        format!("{seconds}s")
    }
}

/// Local date and time.
pub(in crate::cli) fn clock(moment: Moment, zone: &TimeZone) -> String {
    i64::try_from(moment.0)
        .ok()
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
        .map_or_else(
            || "an impossible time".to_owned(),
            |time| {
                time.to_zoned_datetime(zone.clone())
                    .strftime("%Y-%m-%d %H:%M:%S")
                    .to_string()
            },
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_are_enough() {
        let cases = [
            (999, "0s"),
            (59_000, "59s"),
            (725_000, "12m05s"),
            (11_520_000, "3h12m"),
            (187_200_000, "2d04h"),
        ];
        for (millis, text) in cases {
            assert_eq!(span(millis), text);
        }
    }

    #[test]
    fn any_moment_can_be_shown() {
        assert_eq!(clock(Moment(0), &TimeZone::UTC), "1970-01-01 00:00:00");
        assert_eq!(
            clock(Moment(u64::MAX), &TimeZone::UTC),
            "an impossible time"
        );
    }
}
