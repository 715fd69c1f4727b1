//! What is known of a job's load on a GPU alone: learned, measured while it was alone, worked out
//! from what it added to a shared GPU, or the usual.

use aegis_common::id::{GpuIndex, JobId};
use aegis_common::learned::Profile;
use aegis_common::policy::Tier;

use super::core::Core;
use super::gate::{Figures, figures};
use super::interference::{Load, predict};
use super::job::Job;

/// A job adds at least this much to a GPU, thousandths: less is noise.
const LEAST: f64 = 20.0;

impl Core {
    /// A job's activity of SMs and DRAM alone, thousandths, and the bytes it holds: at least
    /// `held`; the usual where nothing is known.
    pub(super) fn load_figures(&self, job: &Job, held: u64) -> (u16, u16, u64) {
        let known = job.learned.peak.or(job.resources.gpu_mem);
        let seen = job.attempts.iter().map(|attempt| attempt.peak).max();
        let floor = job.floor.unwrap_or(0);
        let peak = held
            .max(known.unwrap_or(0))
            .max(seen.unwrap_or(0))
            .max(floor);
        let usual = |figure: u64| u16::try_from(figure.min(1000)).unwrap_or(1000);
        let profile = job.profile();
        let sm = profile.map(|profile| profile.sm_active);
        let dram = profile.and_then(|profile| profile.dram_active);
        (
            sm.unwrap_or(usual(self.usual.sm_active)),
            dram.unwrap_or(usual(self.usual.dram_active)),
            if peak == 0 { self.usual.peak } else { peak },
        )
    }

    fn load(&self, job: &Job, held: u64) -> Load {
        let (sm, dram, peak) = self.load_figures(job, held);
        Load::new(sm, dram, peak)
    }

    /// The residents' loads on a GPU.
    pub(super) fn loads(&self, residents: &[JobId], gpu: GpuIndex) -> Vec<Load> {
        let each = residents.iter().filter_map(|&id| {
            let (job, run) = self.job_and_run(id)?;
            let held = run.hold(gpu).map_or(0, |hold| hold.peak);
            let slowdown = self.present_slowdown(job, run);
            Some(Load {
                measured: slowdown.map(|permille| f64::from(permille) / 1000.0),
                ..self.load(job, held)
            })
        });
        each.collect()
    }

    /// Takes what a GPU's samples say about the load of its residents: of the only one, or of the
    /// only one of which nothing is known yet.
    pub(super) fn attribute(&mut self, index: GpuIndex) {
        let Some(gpu) = self.gpus.get(&index) else {
            return;
        };
        let gpm = matches!(gpu.info.tier, Tier::Gpm | Tier::Dcgm);
        if !gpm || gpu.residents.is_empty() || !gpu.foreign.is_empty() {
            return;
        }
        let unknown = gpu.residents.iter().copied().filter(|id| {
            let job = self.jobs.get(id);
            job.is_some_and(|job| job.profile().is_none())
        });
        let unknown: Vec<JobId> = unknown.collect();
        let alone = gpu.residents.len() == 1;
        if !alone && unknown.len() != 1 {
            return;
        }
        let Some(figures) = figures(&gpu.samples, self.gate_since(gpu), &self.policy) else {
            return;
        };
        if let [only] = gpu.residents[..] {
            let settled = self.job_and_run(only).is_some_and(|(_, run)| {
                run.observation.observed() || run.observation.settled_from(&self.policy).is_some()
            });
            if let Some(job) = self.jobs.get_mut(&only).filter(|_| settled) {
                job.alone = Some(profile(figures));
            }
        } else if let [one] = unknown[..] {
            let shared = self.difference(index, one, figures);
            if let Some(job) = self.jobs.get_mut(&one) {
                job.shared = shared;
            }
        }
    }

    /// What one resident adds to the others, scaled up by the slowdown predicted for it.
    fn difference(&self, index: GpuIndex, one: JobId, figures: Figures) -> Option<Profile> {
        let gpu = self.gpus.get(&index)?;
        let (job, run) = self.job_and_run(one)?;
        let others: Vec<JobId> = gpu
            .residents
            .iter()
            .copied()
            .filter(|&id| id != one)
            .collect();
        let held = run.hold(index).map_or(0, |hold| hold.peak);
        let mut loads = self.loads(&others, index);
        loads.push(self.load(job, held));
        let slow = predict(&loads);
        let mine = slow.last().copied()?;
        let others = loads.iter().zip(&slow).take(others.len());
        let (mut sm, mut dram) = (
            f64::from(figures.sm_active),
            figures.dram_active.map(f64::from),
        );
        for (load, &slow) in others {
            let slow = load.measured.unwrap_or(slow);
            sm -= 1000.0 * load.sm / slow;
            dram = dram.map(|dram| dram - 1000.0 * load.dram / slow);
        }
        let scaled = |rest: f64| permille((rest.max(LEAST) * mine).min(1000.0));
        Some(Profile {
            sm_active: scaled(sm),
            sm_occupancy: None,
            dram_active: dram.map(scaled),
        })
    }
}

impl Job {
    /// How busy it keeps a GPU alone, by the best evidence there is.
    pub(super) fn profile(&self) -> Option<Profile> {
        self.alone.or(self.learned.profile).or(self.shared)
    }
}

const fn profile(figures: Figures) -> Profile {
    Profile {
        sm_active: figures.sm_active,
        sm_occupancy: figures.sm_occupancy,
        dram_active: figures.dram_active,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0..=1000"
)]
fn permille(value: f64) -> u16 {
    value.clamp(0.0, 1000.0) as u16
}
