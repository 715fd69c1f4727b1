//! How often a daemon with nothing to do wakes up.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{GIB, Setup, World};

use crate::host::{now_ns, status_field};
use crate::report::Figure;
use crate::stats::{Stats, ms};

/// Until a daemon that has just started is idle.
const SETTLE: Duration = Duration::from_secs(5);
/// How long is counted. Idle telemetry reads every 10 s.
const WINDOW: Duration = Duration::from_secs(20);

/// Measures.
///
/// # Errors
/// The daemon did not start or ended.
pub(crate) fn measure() -> Result<Vec<Figure>> {
    let machine = || Setup::plain(1, 80 * GIB);
    // NVML that cannot be loaded: nothing is sampled.
    let off = World::start(machine().key("telemetry.nvml_library", "\"/nonexistent\""))?;
    let on = World::start(machine())?;
    let [off, on] = wakeups([off, on])?;
    Ok(vec![
        Figure::new(
            "idle_wakeups_per_s",
            "context switches of all threads of an idle daemon, without NVML",
            Some(2.0),
            off,
        ),
        Figure::new(
            "idle_wakeups_per_s_telemetry_on",
            "the same with NVML",
            None,
            on,
        ),
    ])
}

/// Both daemons are watched at the same time.
fn wakeups(mut worlds: [World; 2]) -> Result<[Stats; 2]> {
    std::thread::sleep(SETTLE);
    let mut pids = [0; 2];
    for (pid, world) in pids.iter_mut().zip(&mut worlds) {
        *pid = world.daemon()?.pid();
    }
    let from = now_ns();
    let before = [switches(pids[0])?, switches(pids[1])?];
    std::thread::sleep(WINDOW);
    let after = [switches(pids[0])?, switches(pids[1])?];
    let seconds = ms(now_ns() - from) / 1000.0;
    let rate = |before: u64, after: u64| {
        #[expect(
            clippy::cast_precision_loss,
            reason = "context switches of 20 s are far below 2^53"
        )]
        let switches = after.saturating_sub(before) as f64;
        Stats::of(vec![switches / seconds]).context("one value is some")
    };
    Ok([rate(before[0], after[0])?, rate(before[1], after[1])?])
}

/// Context switches of a process so far, voluntary and not, over all its threads.
fn switches(pid: u32) -> Result<u64> {
    let tasks = Path::new("/proc").join(pid.to_string()).join("task");
    let entries = std::fs::read_dir(&tasks).with_context(|| tasks.display().to_string())?;
    let mut sum = 0;
    for entry in entries {
        let status = entry?.path().join("status");
        for field in ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"] {
            // A thread may have ended since.
            sum += status_field(&status, field).unwrap_or(0);
        }
    }
    Ok(sum)
}
