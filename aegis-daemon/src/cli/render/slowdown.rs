//! How fast a job goes, in words.

use aegis_common::job::{Slowdown, SlowdownUnknown};
use aegis_common::wire::PaceView;

use super::time;

/// `1.32 times as long as alone`, or why that is not known.
pub(super) fn sentence(slowdown: Slowdown) -> String {
    let why = match slowdown {
        Slowdown::Measured { permille: ..=1004 } => return "none: as fast as alone".to_owned(),
        Slowdown::Measured { permille } => {
            let hundredths = permille.saturating_add(5) / 10;
            let (whole, part) = (hundredths / 100, hundredths % 100);
            return format!("takes {whole}.{part:02} times as long as alone");
        }
        Slowdown::Unknown { why } => why,
    };
    let why = match why {
        SlowdownUnknown::NotLaunching => "nothing was launched lately",
        SlowdownUnknown::NoPeriod => {
            "its launches did not repeat one sequence often enough in the last minute"
        }
        SlowdownUnknown::NeverAlone => {
            "its present launch sequence was never measured with the GPU to itself"
        }
        SlowdownUnknown::CpuBound => "tasks wait for CPUs: the host may be what is slow",
        SlowdownUnknown::IoBound => "tasks wait for I/O: the host may be what is slow",
    };
    format!("unknown: {why}")
}

/// `120 launches, 12.500 times a second over 3s, 1s ago`.
pub(super) fn pace(pace: &PaceView) -> String {
    format!(
        "{} launches, repeated {}.{:03} times a second over {}, {} ago",
        pace.period,
        pace.rate_uhz / 1_000_000,
        pace.rate_uhz / 1000 % 1000,
        time::span(pace.window_ms.into()),
        time::span(pace.age_ms)
    )
}
