//! How much tasks wait for the host's CPUs and disks: Linux's pressure stall information.
//!
//! A job that waits for its data loader is not slowed by its neighbours on the GPU, so while the
//! host is the bottleneck no slowdown is known (contract C6). A kernel without the figures, or one
//! that hides them from containers, leaves them unknown.

use std::path::Path;

use aegis_common::event::Event;
use aegis_common::id::Moment;

use super::Owner;

/// How often the files are read, milliseconds. They show a mean over ten seconds.
const READ_EVERY_MS: u64 = 2_000;
/// The core is told of changes of at least this much, thousandths: the journal shall not grow by
/// noise.
const CHANGE: u16 = 50;

/// Shares of time in which some task waited, thousandths: CPU and I/O.
type Waits = [Option<u16>; 2];

/// What was read and told.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    read: Moment,
    told: Waits,
}

impl Owner {
    /// Tells the core how busy the host is, if it is time to look and it changed.
    pub(super) fn look_at_host(&mut self) {
        let now = self.clock.now();
        if now.millis_since(self.pressure.read) < READ_EVERY_MS {
            return;
        }
        self.pressure.read = now;
        let directory = &self.settings.pressure_dir;
        let waits = ["cpu", "io"].map(|name| read(&directory.join(name)));
        if !changed(self.pressure.told, waits) {
            return;
        }
        self.pressure.told = waits;
        let [cpu_waits, io_waits] = waits;
        self.feed(Event::HostSampled {
            cpu_waits,
            io_waits,
        });
    }
}

fn changed(told: Waits, now: Waits) -> bool {
    told.iter().zip(now).any(|(told, now)| match (*told, now) {
        (Some(told), Some(now)) => told.abs_diff(now) >= CHANGE,
        (told, now) => told != now,
    })
}

fn read(file: &Path) -> Option<u16> {
    parse(&std::fs::read_to_string(file).ok()?)
}

/// The ten-second mean of the line `some avg10=12.34 avg60=… avg300=… total=…`, thousandths.
fn parse(text: &str) -> Option<u16> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let mean = some
        .split(' ')
        .find_map(|word| word.strip_prefix("avg10="))?;
    let percent: f64 = mean.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 1000 by the filter"
    )]
    (0.0..=100.0)
        .contains(&percent)
        .then(|| (percent * 10.0).round() as u16)
}

#[cfg(test)]
mod tests {
    use super::{changed, parse};
    use proptest::prelude::*;

    #[test]
    fn the_ten_second_mean_of_some_counts() {
        let text = "some avg10=41.27 avg60=3.00 avg300=1.00 total=9\n\
                    full avg10=9.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(parse(text), Some(413));
        assert_eq!(parse("full avg10=9.00 avg60=0.00\n"), None);
        assert_eq!(parse("some avg10=NaN total=1"), None);
        assert_eq!(parse("some avg10=101.0 total=1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn noise_is_not_told() {
        assert!(!changed([Some(100), None], [Some(149), None]));
        assert!(changed([Some(100), None], [Some(150), None]));
        assert!(changed([Some(100), None], [Some(100), Some(0)]));
        assert!(changed([Some(100), None], [None, None]));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(some )?(avg10=)?.{0,40}") {
            prop_assert!(parse(&text).is_none_or(|waits| waits <= 1000));
        }
    }
}
