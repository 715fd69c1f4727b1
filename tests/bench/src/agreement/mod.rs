//! `aegis-bench agreement`: one mix of jobs on the daemon and in replay, under three sets of rules.
//! What replay says about rules is worth something only if the daemon says the same.

mod live;
mod mix;
mod replayed;
mod rules;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use self::live::Ran;
use self::rules::Rules;

/// Ratios may differ by this share.
const TOLERANCE: f64 = 0.10;

/// Options of `agreement`.
#[derive(Args)]
pub(crate) struct Options {
    /// Print one JSON document on standard output
    #[arg(long)]
    json: bool,
}

/// One set of rules, relative to exclusive use.
#[derive(Serialize)]
struct Row {
    rules: &'static str,
    /// Makespan on the daemon, seconds.
    makespan_s: f64,
    /// Attempts beyond each job's first on the daemon.
    retries: usize,
    daemon_makespan: f64,
    replay_makespan: f64,
    daemon_jct: f64,
    replay_jct: f64,
    daemon_exec: f64,
    replay_exec: f64,
    /// Larger relative difference of the ratios of makespan and JCT.
    difference: f64,
}

/// Measures and prints.
///
/// # Errors
/// The daemon did not start, a job failed, or daemon and replay disagree by more than a tenth.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut runs = Vec::new();
    for rules in Rules::ALL {
        eprintln!("bench: 20 jobs on the simulated driver, {}", rules.name());
        runs.push(live::run(rules)?);
    }
    let Some(alone) = runs.first() else {
        bail!("no rules");
    };
    let trace = replayed::trace(alone);
    let base = replayed::replay(&trace, Rules::Exclusive);
    let rows: Vec<Row> = Rules::ALL
        .iter()
        .zip(&runs)
        .map(|(&rules, ran)| {
            let report = replayed::replay(&trace, rules);
            let daemon_makespan = makespan_s(ran) / makespan_s(alone);
            let daemon_jct = jct_s(ran) / jct_s(alone);
            let replay_makespan = report.makespan / base.makespan;
            let replay_jct = report.jct / base.jct;
            let off = |daemon: f64, replay: f64| (replay / daemon - 1.0).abs();
            Row {
                rules: rules.name(),
                makespan_s: makespan_s(ran),
                retries: ran.iter().map(|ran| ran.attempts - 1).sum(),
                daemon_makespan,
                replay_makespan,
                daemon_jct,
                replay_jct,
                daemon_exec: exec_s(ran) / exec_s(alone),
                replay_exec: report.exec / base.exec,
                difference: off(daemon_makespan, replay_makespan).max(off(daemon_jct, replay_jct)),
            }
        })
        .collect();
    print(&rows);
    let agree = rows.iter().all(|row| row.difference <= TOLERANCE);
    if options.json {
        let document = json!({
            "measured_on": "simulated driver",
            "rules": rows,
            "tolerance": TOLERANCE,
            "agree": agree,
        });
        println!("{}", serde_json::to_string_pretty(&document)?);
    }
    if !agree {
        bail!("daemon and replay differ by more than {TOLERANCE}");
    }
    Ok(())
}

fn print(rows: &[Row]) {
    eprintln!("\nsimulated driver; relative to exclusive use, daemon | replay");
    eprintln!(
        "{:<32} {:>9} {:>8} {:>15} {:>15} {:>15} {:>6}",
        "rules", "seconds", "retries", "makespan", "mean JCT", "mean exec", "off %"
    );
    for row in rows {
        let pair = |daemon: f64, replay: f64| format!("{daemon:.3} | {replay:.3}");
        eprintln!(
            "{:<32} {:>9.1} {:>8} {:>15} {:>15} {:>15} {:>6.1}",
            row.rules,
            row.makespan_s,
            row.retries,
            pair(row.daemon_makespan, row.replay_makespan),
            pair(row.daemon_jct, row.replay_jct),
            pair(row.daemon_exec, row.replay_exec),
            row.difference * 100.0
        );
    }
}

fn makespan_s(ran: &[Ran]) -> f64 {
    let last = ran.iter().map(|ran| ran.ended_ms).max().unwrap_or(0);
    last as f64 / 1e3
}

fn jct_s(ran: &[Ran]) -> f64 {
    mean_s(ran, |ran| ran.ended_ms - ran.submitted_ms)
}

/// Running time of all attempts.
fn exec_s(ran: &[Ran]) -> f64 {
    mean_s(ran, |ran| ran.ran_ms)
}

fn mean_s(ran: &[Ran], span_ms: impl Fn(&Ran) -> u64) -> f64 {
    let each = ran.iter().map(|ran| span_ms(ran) as f64 / 1e3);
    each.sum::<f64>() / ran.len().max(1) as f64
}
