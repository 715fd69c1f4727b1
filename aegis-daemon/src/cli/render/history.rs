//! What earlier runs taught.

use std::fmt::Write;

use aegis_common::learned::Learned;
use aegis_common::reason::{bytes, permille};
use aegis_common::wire::{HistoryEntry, HistoryRun};

use super::super::sanitise::sanitise;
use super::super::style::{Paint, Style};
use super::super::user::Users;
use super::table::{Column, Table};
use super::time;

/// What an empty list says.
const EMPTY: &str = "Nothing is known yet: AEGIS learns from each attempt that ends.\n";

/// Records as a table.
pub(in crate::cli) fn list(
    entries: &[HistoryEntry],
    all_users: bool,
    filtered: bool,
    style: &Style,
) -> String {
    if entries.is_empty() {
        let text = if filtered {
            "Nothing is known of that.\n"
        } else {
            EMPTY
        };
        return text.to_owned();
    }
    let column = |title, right, cut| Column { title, right, cut };
    let mut columns = vec![
        column("RUNS", true, 0),
        column("FAILED", true, 0),
        column("PEAK", true, 0),
        column("P50", true, 0),
        column("SEEN", true, 0),
        column("GPU", false, 1),
        column("COMMAND", false, 2),
    ];
    if all_users {
        columns.insert(0, column("USER", false, 1));
    }
    let mut table = Table::new(columns);
    let mut users = Users::default();
    for entry in entries {
        let mut cells = vec![
            (entry.runs.to_string(), None),
            (failures(entry), None),
            (entry.learned.peak.map_or_else(dash, bytes), None),
            (entry.duration_p50_ms.map_or_else(dash, time::span), None),
            (ago(entry, style), None),
            (gpus(entry), None),
            (entry.command.clone(), None),
        ];
        if all_users {
            cells.insert(0, (user(entry, &mut users), None));
        }
        table.row(cells);
    }
    table.render(style)
}

/// One record with its attempts.
pub(in crate::cli) fn one(entry: &HistoryEntry, style: &Style) -> String {
    let mut out = style.paint(Paint::Bold, &sanitise(&entry.command)) + "\n";
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "  {key:<10} {value}");
    };
    line("user", sanitise(&user(entry, &mut Users::default())));
    line("on", sanitise(&gpus(entry)));
    line(
        "runs",
        format!(
            "{} kept: {} completed, {} out of memory, {} failed or stopped",
            entry.runs, entry.completed, entry.out_of_memory, entry.failed
        ),
    );
    line("known", learned(&entry.learned));
    if let Some(alone) = alone(&entry.learned) {
        line("alone", alone);
    }
    line(
        "last",
        format!(
            "job {}, {}",
            entry.last_job,
            time::clock(entry.last_used, &style.zone)
        ),
    );
    for run in &entry.attempts {
        line(
            &format!("job {}.{}", run.job, run.attempt),
            attempt(run, style),
        );
    }
    out
}

/// What was forgotten.
pub(in crate::cli) fn forgotten(entries: &[HistoryEntry]) -> String {
    if entries.is_empty() {
        return "Nothing was known of that.\n".to_owned();
    }
    let mut out = String::new();
    for entry in entries {
        let _ = writeln!(
            out,
            "forgotten: {} ({} runs on {})",
            sanitise(&entry.command),
            entry.runs,
            sanitise(&gpus(entry))
        );
    }
    out
}

/// What is known in a line: `peak 6.20 GiB, 1h02m alone, from 4 runs`; `ran 1h02m` where others may
/// have slowed it.
pub(in crate::cli) fn learned(learned: &Learned) -> String {
    if learned.runs == 0 {
        return "nothing yet: no attempt completed or ran for long".to_owned();
    }
    let mut text = learned.peak.map_or_else(
        || "no GPU memory seen".to_owned(),
        |peak| format!("peak {}", bytes(peak)),
    );
    if let Some(work) = learned.work {
        let span = time::span(work.p50);
        let _ = if learned.work_measured {
            write!(text, ", {span} alone")
        } else {
            write!(text, ", ran {span}")
        };
    }
    let plural = if learned.runs == 1 { "" } else { "s" };
    let _ = write!(text, ", from {} run{plural}", learned.runs);
    if !learned.exact {
        text.push_str(" of similar commands");
    }
    text
}

fn alone(learned: &Learned) -> Option<String> {
    let profile = learned.profile?;
    let mut text = format!("SM {}", permille(profile.sm_active));
    for (name, value) in [
        ("occupancy", profile.sm_occupancy),
        ("DRAM", profile.dram_active),
    ] {
        if let Some(value) = value {
            let _ = write!(text, ", {name} {}", permille(value));
        }
    }
    if !learned.solo_rates.is_empty() {
        let _ = write!(text, "; {} launch sequences", learned.solo_rates.len());
    }
    Some(text)
}

fn attempt(run: &HistoryRun, style: &Style) -> String {
    let seen = &run.observed;
    let end = match (seen.completed, seen.out_of_memory) {
        (true, _) => "completed",
        (false, true) => "out of memory",
        (false, false) => "failed or stopped",
    };
    let mut text = format!(
        "{end} after {}, {}",
        time::span(seen.ran_ms),
        time::clock(seen.ended, &style.zone)
    );
    if let Some(peak) = seen.peak {
        let _ = write!(text, ", peak {}", bytes(peak));
    }
    text
}

/// Attempts that did not complete, those out of memory apart.
fn failures(entry: &HistoryEntry) -> String {
    match (entry.failed, entry.out_of_memory) {
        (failed, 0) => failed.to_string(),
        (failed, oom) => format!("{failed}+{oom}oom"),
    }
}

fn gpus(entry: &HistoryEntry) -> String {
    match entry.gpus {
        1 => entry.gpu_model.clone(),
        more => format!("{more} {}", entry.gpu_model),
    }
}

fn user(entry: &HistoryEntry, users: &mut Users) -> String {
    let known = entry.user.clone();
    known.unwrap_or_else(|| users.name(entry.uid).to_owned())
}

fn ago(entry: &HistoryEntry, style: &Style) -> String {
    time::span(style.now.millis_since(entry.last_used)) + " ago"
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::super::sanitise::is_active;
    use super::super::super::style::tests::plain;
    use super::super::samples::{HOSTILE, ago};
    use super::*;
    use aegis_common::id::JobId;
    use aegis_common::learned::{Observed, Profile, Quantiles};

    const GIB: u64 = 1 << 30;

    fn entry(name: &str) -> HistoryEntry {
        let observed = Observed {
            gpu_model: name.to_owned(),
            completed: false,
            out_of_memory: true,
            peak: Some(5 * GIB),
            overhead: None,
            profile: None,
            solo_rates: Vec::new(),
            ran_ms: 61_000,
            work_ms: None,
            ended: ago(3_600),
        };
        HistoryEntry {
            uid: 1001,
            user: Some(name.to_owned()),
            command: format!("python /home/ana/{name}.py batch-size=32"),
            gpus: 2,
            gpu_model: "NVIDIA H200".to_owned(),
            runs: 5,
            completed: 3,
            out_of_memory: 1,
            failed: 1,
            duration_p50_ms: Some(3_720_000),
            learned: Learned {
                runs: 4,
                exact: true,
                peak: Some(6 * GIB),
                overhead: None,
                profile: Some(Profile {
                    sm_active: 640,
                    sm_occupancy: Some(310),
                    dram_active: None,
                }),
                solo_rates: Vec::new(),
                work: Some(Quantiles {
                    p10: 1,
                    p50: 3_720_000,
                    p90: 9_000_000,
                }),
                work_measured: true,
            },
            last_job: JobId(7),
            last_used: ago(3_600),
            attempts: vec![HistoryRun {
                job: JobId(7),
                attempt: 1,
                observed,
            }],
        }
    }

    #[test]
    fn a_list_and_one_of_it() {
        let unknown = HistoryEntry {
            learned: Learned::default(),
            duration_p50_ms: None,
            out_of_memory: 0,
            gpus: 1,
            ..entry("b")
        };
        assert_eq!(
            list(&[entry("a"), unknown], true, false, &plain()),
            "\
USER  RUNS  FAILED      PEAK    P50       SEEN  GPU            COMMAND
a        5  1+1oom  6.00 GiB  1h02m  1h00m ago  2 NVIDIA H200  python /home/ana/a.py batch-size=32
b        5       1         -      -  1h00m ago  NVIDIA H200    python /home/ana/b.py batch-size=32
"
        );
        assert_eq!(
            one(&entry("a"), &plain()),
            "\
python /home/ana/a.py batch-size=32
  user       a
  on         2 NVIDIA H200
  runs       5 kept: 3 completed, 1 out of memory, 1 failed or stopped
  known      peak 6.00 GiB, 1h02m alone, from 4 runs
  alone      SM 64.0 %, occupancy 31.0 %
  last       job 7, 2026-01-02 02:04:05
  job 7.1    out of memory after 1m01s, 2026-01-02 02:04:05, peak 5.00 GiB
"
        );
        let shared = Learned {
            work_measured: false,
            ..entry("a").learned
        };
        assert_eq!(learned(&shared), "peak 6.00 GiB, ran 1h02m, from 4 runs");
        assert!(list(&[], false, false, &plain()).contains("learns from each"));
        assert!(forgotten(&[entry("a")]).starts_with("forgotten: python /home/ana/a.py"));
        let similar = Learned {
            exact: false,
            runs: 1,
            ..Learned::default()
        };
        let text = learned(&similar);
        assert_eq!(text, "no GPU memory seen, from 1 run of similar commands");
    }

    #[test]
    fn nothing_hostile_reaches_a_terminal() {
        let entry = HistoryEntry {
            gpu_model: HOSTILE.to_owned(),
            ..entry(HOSTILE)
        };
        for text in [
            list(std::slice::from_ref(&entry), true, false, &plain()),
            one(&entry, &plain()),
            forgotten(&[entry]),
        ] {
            assert!(text.contains("evil"), "{text}");
            assert!(!text.contains(|c| is_active(c) && c != '\n'), "{text}");
            assert!(!text.contains("\n\n"), "{text}");
        }
    }
}
