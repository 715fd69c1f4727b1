//! A server's own finished jobs as a trace.

use std::collections::BTreeMap;

use aegis_common::learned::Profile;
use aegis_common::wire::PastJob;

use super::assemble::Assembly;
use super::programs::Programs;
use super::{Trace, TraceJob};
use crate::replay::catalogue;
use crate::replay::workload::Workload;

/// Memory counts less than activity where programs are compared: its logarithm by this.
const MEMORY_WEIGHT: f64 = 0.1;
/// NVML utilisation by SM activity, at most 1: about the catalogue's median.
const UTILISATION: f64 = 1.3;
/// Least time from the first launch to the end, seconds.
const SHORTEST_S: f64 = 1.0;

/// What had to be assumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PastAssumed {
    /// Jobs that ended in the span.
    pub found: usize,
    /// Left out: they never ran.
    pub never_ran: usize,
    /// Left out: they want more GPUs than the machine has.
    pub too_wide: usize,
    /// Jobs of the trace whose memory was never seen: they have that of a catalogue program.
    pub without_peak: usize,
    /// Jobs of the trace that were never seen alone: they keep GPUs as busy as a catalogue program.
    pub without_profile: usize,
    /// Jobs of the trace whose slowdown is not known: their running time counts as the time alone.
    pub without_slowdown: usize,
    /// Jobs of the trace that failed or were stopped: they count as work of the length they ran.
    pub failed: usize,
}

/// One (user, command, GPUs).
#[derive(Default)]
struct Program {
    peak: u64,
    profile: Option<Profile>,
}

/// The trace of these jobs. Runs of one command are one program: it has the highest peak seen and
/// the last profile. How it and others slow each other is that of the catalogue program with the
/// most similar profile. The same arguments give the same trace.
#[must_use]
pub fn from_past(found: &[PastJob], how: Assembly) -> (Trace, PastAssumed) {
    let mut assumed = PastAssumed {
        found: found.len(),
        never_ran: found.iter().filter(|job| job.last_ran_ms == 0).count(),
        ..PastAssumed::default()
    };
    let mut jobs: Vec<&PastJob> = found.iter().filter(|job| job.last_ran_ms > 0).collect();
    let ran = jobs.len();
    jobs.retain(|job| (1..=how.gpus).contains(&job.gpus));
    assumed.too_wide = ran - jobs.len();
    jobs.sort_by_key(|job| (job.submitted, job.job));
    let skipped = jobs.len().saturating_sub(how.jobs.unwrap_or(usize::MAX));
    jobs.drain(..skipped);

    let seen = seen(&jobs);
    let mut stand_ins = Programs::new(how.gpu_memory, how.seed);
    let (mut workloads, mut places) = (Vec::new(), BTreeMap::new());
    let mut users: BTreeMap<u32, u32> = BTreeMap::new();
    let first = jobs.first().map_or(0, |job| job.submitted.0);
    let mut trace = Vec::with_capacity(jobs.len());
    for job in jobs {
        let key = (job.uid, job.command.as_str(), job.gpus);
        let next_user = u32::try_from(users.len()).unwrap_or(u32::MAX);
        let known = seen.get(&key);
        assumed.without_peak += usize::from(known.is_none_or(|known| known.peak == 0));
        assumed.without_profile += usize::from(known.is_none_or(|known| known.profile.is_none()));
        let place = *places.entry(key).or_insert_with(|| {
            let stand_in = stand_ins.stand_in(&job.command, job.gpus);
            workloads.extend(workload(&job.command, job.gpus, known, stand_in));
            workloads.len() - 1
        });
        let work_ms = job.observed.as_ref().and_then(|seen| seen.work_ms);
        assumed.without_slowdown += usize::from(work_ms.is_none());
        assumed.failed += usize::from(!job.completed);
        let startup_s = workloads
            .get(place)
            .map_or(0.0, |one: &Workload| one.startup_s);
        let alone_s = work_ms.unwrap_or(job.last_ran_ms) as f64 / 1e3;
        trace.push(TraceJob {
            submit_ms: stretched(job.submitted.0.saturating_sub(first), how.load),
            user: *users.entry(job.uid).or_insert(next_user),
            gpus: job.gpus,
            workload: place,
            solo_s: Some((alone_s - startup_s).max(SHORTEST_S)),
            // Under another policy a job may run longer than it did: its limit must not end it.
            time_limit_s: None,
            gpu_mem: job.gpu_mem,
        });
    }
    let trace = Trace {
        name: "history".to_owned(),
        workloads,
        jobs: trace,
    };
    (trace, assumed)
}

fn seen<'a>(jobs: &[&'a PastJob]) -> BTreeMap<(u32, &'a str, u32), Program> {
    let mut seen: BTreeMap<_, Program> = BTreeMap::new();
    for job in jobs {
        let key = (job.uid, job.command.as_str(), job.gpus);
        let program = seen.entry(key).or_default();
        let observed = job.observed.as_ref();
        let peak = observed.and_then(|seen| seen.peak).unwrap_or(0);
        program.peak = program.peak.max(job.peak).max(peak);
        program.profile = observed.and_then(|seen| seen.profile).or(program.profile);
    }
    seen
}

/// A program with what was seen of it; the rest is the stand-in's.
fn workload(
    name: &str,
    gpus: u32,
    known: Option<&Program>,
    stand_in: Option<Workload>,
) -> Option<Workload> {
    let peak = known.map_or(0, |known| known.peak);
    let profile = known.and_then(|known| known.profile);
    let similar = profile.and_then(|profile| similar(profile, peak));
    let base = similar.or(stand_in)?;
    let peak = if peak > 0 { peak } else { base.peak() };
    let mut workload = Workload {
        name: name.to_owned(),
        gpus,
        unused_gpus: 0,
        peaks: vec![peak; gpus as usize],
        ..base
    };
    if let Some(profile) = profile {
        let share = |permille: u16| f64::from(permille) / 1e3;
        workload.sm_active = share(profile.sm_active);
        workload.utilisation = (workload.sm_active * UTILISATION).min(1.0);
        if let Some(occupancy) = profile.sm_occupancy {
            workload.sm_occupancy = share(occupancy);
        }
        if let Some(dram) = profile.dram_active {
            workload.dram_active = share(dram);
        }
    }
    Some(workload)
}

/// The catalogue program that keeps a GPU busy most alike.
fn similar(profile: Profile, peak: u64) -> Option<Workload> {
    let part = |seen: Option<u16>, theirs: f64| {
        seen.map_or(0.0, |seen| (f64::from(seen) / 1e3 - theirs).powi(2))
    };
    let distance = |one: &Workload| {
        let memory = if peak > 0 {
            (MEMORY_WEIGHT * (peak as f64 / one.peak().max(1) as f64).ln()).powi(2)
        } else {
            0.0
        };
        part(Some(profile.sm_active), one.sm_active)
            + part(profile.sm_occupancy, one.sm_occupancy)
            + part(profile.dram_active, one.dram_active)
            + memory
    };
    catalogue::workloads()
        .into_iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates"
)]
fn stretched(millis: u64, load: f64) -> u64 {
    (millis as f64 / load) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use aegis_common::id::{JobId, Moment};
    use aegis_common::learned::Observed;

    const HOW: Assembly = Assembly {
        gpus: 2,
        gpu_memory: 40 << 30,
        jobs: None,
        load: 1.0,
        seed: 0,
    };

    fn past(id: u64, submitted: u64, command: &str, ran_ms: u64) -> PastJob {
        PastJob {
            job: JobId(id),
            uid: 1_000 + u32::try_from(id % 2).unwrap(),
            command: command.to_owned(),
            gpus: 1,
            gpu_mem: None,
            time_limit_s: Some(60),
            submitted: Moment(submitted),
            ended: Moment(submitted + ran_ms),
            completed: true,
            ran_ms,
            last_ran_ms: ran_ms,
            peak: 0,
            observed: None,
        }
    }

    fn observed(sm_active: u16) -> Observed {
        Observed {
            gpu_model: "H200".to_owned(),
            completed: true,
            out_of_memory: false,
            peak: Some(7 << 30),
            overhead: None,
            profile: Some(Profile {
                sm_active,
                sm_occupancy: Some(100),
                dram_active: None,
            }),
            solo_rates: Vec::new(),
            ran_ms: 300_000,
            work_ms: Some(200_000),
            ended: Moment(0),
        }
    }

    #[test]
    fn what_was_seen_is_kept_and_what_was_not_is_counted() {
        let mut jobs = vec![
            past(4, 9_000, "train.py", 100_000),
            past(2, 5_000, "train.py", 300_000),
            PastJob {
                completed: false,
                ..past(3, 6_000, "other.py", 100_000)
            },
            past(5, 7_000, "never.py", 0),
            PastJob {
                gpus: 4,
                ..past(6, 7_000, "wide.py", 10)
            },
        ];
        jobs[1].observed = Some(observed(800));
        jobs[1].peak = 8 << 30;
        let (trace, assumed) = from_past(&jobs, HOW);
        assert_eq!(
            assumed,
            PastAssumed {
                found: 5,
                never_ran: 1,
                too_wide: 1,
                without_peak: 1,
                without_profile: 1,
                without_slowdown: 2,
                failed: 1,
            }
        );
        let submitted: Vec<u64> = trace.jobs.iter().map(|job| job.submit_ms).collect();
        assert_eq!(submitted, [0, 1_000, 4_000]);
        let users: Vec<u32> = trace.jobs.iter().map(|job| job.user).collect();
        assert_eq!(users, [0, 1, 0]);
        let first = &trace.workloads[trace.jobs[0].workload];
        assert_eq!(first.peaks, [8 << 30]);
        assert!((first.sm_active - 0.8).abs() < 1e-9 && (first.sm_occupancy - 0.1).abs() < 1e-9);
        // Its slowdown is known: alone it takes two thirds of what it took.
        let alone = |place: usize| {
            let job = &trace.jobs[place];
            trace.solo_s(job) + trace.workloads[job.workload].startup_s
        };
        assert!((alone(0) - 200.0).abs() < 1e-9);
        assert!((alone(1) - 100.0).abs() < 1e-9);
        assert_eq!(trace.jobs[0].workload, trace.jobs[2].workload);
        assert_eq!(trace, from_past(&jobs, HOW).0);
    }

    #[test]
    fn the_newest_are_kept_where_only_some_are_wanted() {
        let jobs: Vec<PastJob> = (1..10).map(|id| past(id, id * 1_000, "a", 5_000)).collect();
        let how = Assembly {
            jobs: Some(3),
            ..HOW
        };
        let (trace, _) = from_past(&jobs, how);
        assert_eq!(trace.jobs.len(), 3);
        assert!(from_past(&[], HOW).0.jobs.is_empty());
    }
}
