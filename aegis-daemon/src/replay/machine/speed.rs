//! How fast everybody runs: worked out anew whenever who launches where has changed.

use aegis_common::event::Event;

use super::Machine;
use super::attempt::to_ms;
use super::clock::Timer;
use super::gpu::Activity;
use super::job::Stage;
use crate::replay::truth::{Loader, share_cores};
use crate::replay::workload::Workload;

/// A change of the CPU pressure below this is not told, thousandths.
const HOST_STEP: u16 = 50;

/// An attempt that launches.
struct Active<'a> {
    job: usize,
    /// Which workload of the trace.
    place: usize,
    workload: &'a Workload,
    slowdown: f64,
}

impl<'a> Machine<'a> {
    /// Brings all rates, the timers that depend on them, and the GPUs' activity up to date. True if
    /// there was anything to do.
    pub(in crate::replay) fn update_speeds(&mut self) -> bool {
        if !std::mem::take(&mut self.dirty) {
            return false;
        }
        let mut active = self.active();
        self.interfere(&mut active);
        self.squeeze(&mut active);
        self.load_host(&mut active);
        self.set_activity(&active);
        let live: Vec<usize> = self.live.iter().copied().collect();
        for job in live {
            let slowdown = active.iter().find(|one| one.job == job);
            let slowdown = slowdown.map(|one| one.slowdown);
            self.set_rate(job, slowdown);
        }
        true
    }

    fn active(&self) -> Vec<Active<'a>> {
        let active = self.live.iter().filter_map(|&job| {
            let attempt = self.attempt(job)?;
            Some(Active {
                job,
                place: self.trace.jobs.get(job)?.workload,
                workload: self.workload(job).filter(|_| attempt.active())?,
                slowdown: 1.0,
            })
        });
        active.collect()
    }

    /// What neighbours add, on the GPU where that is most: ranks run in lockstep.
    fn interfere(&mut self, active: &mut [Active<'_>]) {
        let places: Vec<(usize, usize)> = active.iter().map(|one| (one.job, one.place)).collect();
        for gpu in 0..self.gpus.len() {
            let here = self.places_on(gpu, &places);
            if here.len() < 2 {
                continue;
            }
            let flat = self.config.co_resident_cost * (here.len() - 1) as f64;
            for &mine in &here {
                let others = here.iter().filter(|&&other| other != mine);
                let added = others.filter_map(|&other| {
                    let (&(_, a), &(_, b)) = (places.get(mine)?, places.get(other)?);
                    Some(self.pairs.increment(a, b))
                });
                let slowdown = 1.0 + flat + added.sum::<f64>();
                if let Some(one) = active.get_mut(mine) {
                    one.slowdown = one.slowdown.max(slowdown);
                }
            }
        }
    }

    /// A GPU cannot deliver more SM activity than there is: all on it slow down alike.
    fn squeeze(&self, active: &mut [Active<'_>]) {
        let places: Vec<(usize, usize)> = active.iter().map(|one| (one.job, one.place)).collect();
        let mut factors = vec![1.0_f64; active.len()];
        for gpu in 0..self.gpus.len() {
            let here = self.places_on(gpu, &places);
            if here.len() < 2 {
                continue;
            }
            let loads = here.iter().filter_map(|&index| active.get(index));
            let load: f64 = loads.map(|one| one.workload.sm_active / one.slowdown).sum();
            for &index in &here {
                if let Some(factor) = factors.get_mut(index) {
                    *factor = factor.max(load / self.config.busy_cap);
                }
            }
        }
        for (one, factor) in active.iter_mut().zip(factors) {
            one.slowdown *= factor;
        }
    }

    /// Places in `active` of those that launch on a GPU.
    fn places_on(&self, gpu: usize, active: &[(usize, usize)]) -> Vec<usize> {
        let residents = self.gpus.get(gpu).map(|gpu| gpu.residents.as_slice());
        let residents = residents.unwrap_or_default();
        let places = residents.iter().filter_map(|resident| {
            let found = active.binary_search_by_key(resident, |&(job, _)| job);
            found.ok()
        });
        places.collect()
    }

    /// Loaders share the CPUs; whose loaders fall short waits for them.
    fn load_host(&mut self, active: &mut [Active<'_>]) {
        let cores = self.config.cpu_cores;
        let mut loaders: Vec<Loader> = active
            .iter()
            .map(|one| Loader {
                demand: one.workload.cpu_cores.clamp(0.0, cores) / one.slowdown,
                share: 1.0,
            })
            .collect();
        let demand = share_cores(&mut loaders, cores);
        for (one, loader) in active.iter_mut().zip(&loaders) {
            one.slowdown /= loader.share;
        }
        let waits = cpu_waits(demand, cores);
        let told = self.cpu_waits;
        if told.is_none_or(|told| told.abs_diff(waits) >= HOST_STEP || (waits == 0 && told > 0)) {
            self.cpu_waits = Some(waits);
            self.outbox.push_back(Event::HostSampled {
                cpu_waits: Some(waits),
                io_waits: Some(0),
            });
        }
    }

    fn set_activity(&mut self, active: &[Active<'_>]) {
        let places: Vec<(usize, usize)> = active.iter().map(|one| (one.job, one.place)).collect();
        for gpu in 0..self.gpus.len() {
            let mut activity = Activity::default();
            let mut unused = 1.0;
            for index in self.places_on(gpu, &places) {
                let Some(one) = active.get(index) else {
                    continue;
                };
                activity.sm_active += one.workload.sm_active / one.slowdown;
                activity.sm_occupancy += one.workload.sm_occupancy / one.slowdown;
                activity.dram_active += one.workload.dram_active / one.slowdown;
                unused *= 1.0 - one.workload.utilisation.clamp(0.0, 1.0);
            }
            // NVML's utilisation is the share of time in which any kernel ran.
            activity.utilisation = 1.0 - unused;
            if let Some(gpu) = self.gpus.get_mut(gpu) {
                gpu.activity = activity;
            }
        }
    }

    /// Sets an attempt's rate and its next step's timer, if either has changed. `slowdown` of one
    /// that launches.
    fn set_rate(&mut self, job: usize, slowdown: Option<f64>) {
        let (now, edition) = (self.now, self.editions + 1);
        let Some(attempt) = self.attempt_mut(job) else {
            return;
        };
        let rate = match (attempt.stage, slowdown) {
            (Stage::Running, Some(slowdown)) => 1.0 / slowdown,
            (Stage::Running, None) => 1.0,
            _ => 0.0,
        };
        // The very same sums give the very same rate.
        let changed = rate.to_bits() != attempt.rate.to_bits();
        if !changed && (attempt.armed.is_some() || rate <= 0.0) {
            return;
        }
        attempt.settle(now);
        attempt.rate = rate;
        attempt.armed = None;
        if rate > 0.0
            && let Some(&(position, _)) = attempt.plan.get(attempt.next)
        {
            let left = ((position - attempt.position) / rate).max(0.0).ceil();
            attempt.armed = Some(edition);
            self.editions = edition;
            let timer = Timer::Step { job, edition };
            self.clock
                .set(now.saturating_add(to_ms(left / 1000.0)), timer);
        }
        if changed {
            self.restart_reports(job);
            self.all_changed(job);
        }
    }
}

/// Share of time in which some task waits for a CPU, thousandths: none while the cores suffice;
/// rising steeply once they do not.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 1000"
)]
fn cpu_waits(demand: f64, cores: f64) -> u16 {
    if demand <= cores || cores <= 0.0 {
        return 0;
    }
    (4_000.0 * (demand - cores) / cores).clamp(0.0, 1_000.0) as u16
}
