//! Counting from the jobs' own step counts and from the simulated driver.

use std::collections::BTreeMap;

use anyhow::Result;
use e2e::{Progress, World, read_progress};

use super::mix::Mix;
use super::shared::{Run, progress_file};

/// What happened in a run under AEGIS.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Jobs submitted.
    pub(crate) jobs: usize,
    /// Jobs all of whose steps were done in one attempt.
    pub(crate) completed: usize,
    /// Attempts that ended for lack of memory.
    pub(crate) oom_events: usize,
    /// Of these, attempts of jobs that completed later.
    pub(crate) oom_recovered: usize,
    /// Of these, attempts that the GPU's free memory, by the driver, could not have satisfied.
    pub(crate) oom_real: usize,
    /// Attempts that failed on a GPU where a process of a younger job was.
    pub(crate) incumbent_failures: usize,
    /// From the first submission to the last job's end, seconds.
    pub(crate) makespan_s: f64,
    /// Duration of each job's completed attempt, seconds, in the order of the mix.
    pub(crate) durations_s: Vec<Option<f64>>,
    /// Pairs of processes of different jobs that launched on one GPU at the same time.
    pub(crate) overlaps: usize,
}

/// One attempt's process, by the progress file and the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Index of the job in the mix.
    pub(crate) job: usize,
    /// First line of a process of it, ns.
    pub(crate) from_ns: u64,
    /// Last line of a process of it, ns.
    pub(crate) to_ns: u64,
    /// GPUs on which it had anything.
    pub(crate) gpus: Vec<usize>,
    /// Most memory it held on any one of them, bytes.
    pub(crate) peak: u64,
    /// What its last allocation left free on its GPU, bytes.
    pub(crate) left: u64,
    /// It did all its steps.
    pub(crate) done: bool,
    /// It ended for lack of memory.
    pub(crate) oom: bool,
}

/// What the driver knows of a process.
#[derive(Clone, Debug, Default)]
struct Seen {
    gpus: Vec<usize>,
    peak: u64,
    left: u64,
}

/// Counts a run under AEGIS.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn managed(world: &World, mix: &Mix, run: &Run) -> Result<Counts> {
    let seen = seen(world)?;
    let mut attempts = Vec::new();
    let mut counts = Counts {
        jobs: run.jobs.len(),
        ..Counts::default()
    };
    let mut last_ns = run.from_ns;
    for (index, job) in mix.jobs.iter().enumerate() {
        let progress = read_progress(&progress_file(world, job))?;
        let own = attempts_of(index, &progress, &seen);
        let ooms = own.iter().filter(|attempt| attempt.oom).count();
        counts.oom_events += ooms;
        counts.oom_real += really_ran_out(&own);
        if progress.completed() {
            counts.completed += 1;
            counts.oom_recovered += ooms;
        }
        let duration = progress.completed_ns().map(seconds);
        counts.durations_s.push(duration);
        last_ns = last_ns.max(progress.span_ns().map_or(0, |(_, to)| to));
        attempts.extend(own);
    }
    counts.makespan_s = seconds(last_ns - run.from_ns);
    counts.incumbent_failures = incumbent_failures(&attempts);
    counts.overlaps = overlaps(&attempts);
    Ok(counts)
}

#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// By process: where it was and how much it held, by the simulated driver; what was left, by its
/// journal.
fn seen(world: &World) -> Result<BTreeMap<u32, Seen>> {
    let mut seen: BTreeMap<u32, Seen> = BTreeMap::new();
    for process in world.machine.timeline().processes {
        let own = seen.entry(process.pid).or_default();
        own.gpus = process.gpus.iter().map(|usage| usage.gpu).collect();
        own.peak = process
            .gpus
            .iter()
            .map(|usage| usage.peak_bytes)
            .max()
            .unwrap_or(0);
    }
    for record in world.machine.journal()? {
        if let (Some(free), Some(own)) = (record.free, seen.get_mut(&record.pid)) {
            own.left = free;
        }
    }
    Ok(seen)
}

/// Out-of-memory ends at which less was free than the job turned out to need.
fn really_ran_out(own: &[Attempt]) -> usize {
    let needed = own
        .iter()
        .filter(|a| a.done)
        .map(|a| a.peak)
        .max()
        .unwrap_or(0);
    let short = |a: &&Attempt| a.oom && needed > a.peak + a.left;
    own.iter().filter(short).count()
}

/// The attempts of a job. Ranks are processes of one attempt, and only the first tells of the end.
fn attempts_of(job: usize, progress: &Progress, seen: &BTreeMap<u32, Seen>) -> Vec<Attempt> {
    let mut attempts: BTreeMap<&str, Attempt> = BTreeMap::new();
    for line in &progress.lines {
        let process = seen.get(&line.pid).cloned().unwrap_or_default();
        let attempt = attempts.entry(&line.attempt).or_insert_with(|| Attempt {
            job,
            from_ns: line.t_ns,
            to_ns: line.t_ns,
            gpus: Vec::new(),
            peak: 0,
            left: process.left,
            done: false,
            oom: false,
        });
        attempt.from_ns = attempt.from_ns.min(line.t_ns);
        attempt.to_ns = attempt.to_ns.max(line.t_ns);
        attempt.gpus.extend(process.gpus);
        attempt.gpus.sort_unstable();
        attempt.gpus.dedup();
        attempt.peak = attempt.peak.max(process.peak);
        attempt.done |= line.event == "done";
        if line.event == "oom" {
            attempt.oom = true;
            attempt.left = process.left;
        }
    }
    attempts.into_values().collect()
}

/// Failed attempts of a job beside a process of a job that started later.
///
/// A job's age is its first attempt's start, as everywhere in AEGIS.
fn incumbent_failures(attempts: &[Attempt]) -> usize {
    let mut age: BTreeMap<usize, u64> = BTreeMap::new();
    for attempt in attempts {
        let first = age.entry(attempt.job).or_insert(attempt.from_ns);
        *first = (*first).min(attempt.from_ns);
    }
    let younger = |a: &Attempt, b: &Attempt| age.get(&b.job) > age.get(&a.job);
    let beside = |a: &Attempt, b: &Attempt| {
        b.job != a.job && meet(a, b) && b.from_ns <= a.to_ns && a.to_ns <= b.to_ns
    };
    attempts
        .iter()
        .filter(|a| !a.done && attempts.iter().any(|b| beside(a, b) && younger(a, b)))
        .count()
}

/// Pairs of attempts of different jobs that were on one GPU at the same time.
fn overlaps(attempts: &[Attempt]) -> usize {
    let mut pairs = 0;
    for (index, a) in attempts.iter().enumerate() {
        let others = attempts.iter().skip(index + 1);
        pairs += others
            .filter(|b| a.job != b.job && meet(a, b) && a.from_ns < b.to_ns && b.from_ns < a.to_ns)
            .count();
    }
    pairs
}

fn meet(a: &Attempt, b: &Attempt) -> bool {
    a.gpus.iter().any(|gpu| b.gpus.contains(gpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(job: usize, from_ns: u64, to_ns: u64, end: &str) -> Attempt {
        Attempt {
            job,
            from_ns,
            to_ns,
            gpus: vec![0],
            peak: 10,
            left: 5,
            done: end == "done",
            oom: end == "oom",
        }
    }

    #[test]
    fn an_incumbent_that_fails_beside_a_newcomer_counts() {
        let newcomer = attempt(1, 50, 300, "done");
        assert_eq!(
            incumbent_failures(&[attempt(0, 0, 100, "oom"), newcomer.clone()]),
            1
        );
        assert_eq!(
            incumbent_failures(&[attempt(0, 0, 100, "done"), newcomer.clone()]),
            0
        );
        // Killed without a word: also a failure.
        assert_eq!(
            incumbent_failures(&[attempt(0, 0, 100, ""), newcomer.clone()]),
            1
        );
        // The newcomer itself may fail.
        assert_eq!(
            incumbent_failures(&[attempt(0, 0, 400, "done"), attempt(1, 50, 300, "oom")]),
            0
        );
        // On another GPU, or after it had gone: none of its business.
        let elsewhere = Attempt {
            gpus: vec![1],
            ..newcomer
        };
        assert_eq!(
            incumbent_failures(&[attempt(0, 0, 100, "oom"), elsewhere]),
            0
        );
        assert_eq!(
            incumbent_failures(&[attempt(0, 0, 100, "oom"), attempt(1, 20, 90, "done")]),
            0
        );
    }

    #[test]
    fn seniority_is_kept_across_attempts() {
        let attempts = [
            attempt(0, 0, 100, "oom"),
            attempt(1, 50, 500, "done"),
            attempt(0, 200, 300, "oom"),
        ];
        assert_eq!(incumbent_failures(&attempts), 2);
    }

    #[test]
    fn running_out_is_judged_by_what_the_driver_had_left() {
        let failed = attempt(0, 0, 100, "oom");
        let done = |peak| Attempt {
            peak,
            ..attempt(0, 200, 300, "done")
        };
        assert_eq!(really_ran_out(&[failed.clone(), done(16)]), 1);
        assert_eq!(
            really_ran_out(&[failed.clone(), done(15)]),
            0,
            "it would have fitted"
        );
        assert_eq!(
            really_ran_out(&[failed]),
            0,
            "never completed: nobody knows"
        );
    }

    #[test]
    fn overlaps_are_pairs_on_one_gpu_at_one_time() {
        let all = [
            attempt(0, 0, 100, "done"),
            attempt(1, 99, 200, "done"),
            attempt(2, 200, 300, "done"),
            Attempt {
                gpus: vec![1],
                ..attempt(3, 0, 300, "done")
            },
        ];
        assert_eq!(overlaps(&all), 1);
    }
    #[test]
    fn ranks_are_one_attempt_and_a_retry_is_another() {
        let line = |pid: u32, attempt: &str, rank: u32, t_ns: u64, event: &str| e2e::ProgressLine {
            kind: "vision".to_owned(),
            pid,
            attempt: attempt.to_owned(),
            rank,
            step: 0,
            steps_total: 1,
            t_ns,
            event: event.to_owned(),
        };
        let progress = Progress {
            lines: vec![
                line(1, "1", 0, 5, "start"),
                line(2, "1", 1, 6, "start"),
                line(3, "2", 0, 20, "start"),
                line(4, "2", 1, 21, "start"),
                line(3, "2", 0, 30, "done"),
            ],
        };
        let gpu = |gpu: usize| Seen {
            gpus: vec![gpu],
            ..Seen::default()
        };
        let seen = [(3, gpu(0)), (4, gpu(1))].into_iter().collect();
        let attempts = attempts_of(0, &progress, &seen);
        let told: Vec<_> = attempts
            .iter()
            .map(|a| (a.from_ns, a.to_ns, a.done, a.gpus.clone()))
            .collect();
        assert_eq!(told, [(5, 6, false, vec![]), (20, 30, true, vec![0, 1])]);
    }
}
