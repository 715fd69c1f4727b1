//! Time line of a GPU: each process has one queue of work, measured in solo time, and queues that
//! have work progress together at the speeds that [`crate::share`] gives.
//!
//! Nobody runs the simulation: whoever waits or reads evaluates what has happened since the last
//! evaluation, piecewise, because speeds change when a queue starts or runs empty.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use crate::clock::now_ns;
use crate::kernel::Cost;
use crate::layout::{GpuState, LIVE, MAX_SAMPLES, MAX_SEGMENTS, Queue, Sample, Segment};
use crate::machine::Machine;
use crate::process::Process;
use crate::share::{Demand, slowdowns};

/// A waiter looks again at least this often: a neighbour may have come or gone.
const SLICE_NS: u64 = 4_000_000;
/// A launch evaluates first if the last evaluation is older, so that an idle gap is not credited.
const STALE_NS: u64 = 200_000;
/// How often a waiter checks that its neighbours live.
const REAP_NS: u64 = 100_000_000;

/// Samples of a GPU's sums are at least this far apart.
const SAMPLE_NS: u64 = 50_000_000;
/// Shortest window of recent utilisation.
const WINDOW_NS: u64 = 166_000_000;

struct Running<'s> {
    queue: &'s Queue,
    pending: u64,
    demand: Demand,
}

impl Queue {
    fn pending(&self) -> u64 {
        self.enqueued
            .load(Acquire)
            .saturating_sub(self.done.completed.load(Acquire))
    }

    /// Drops the work that is left.
    pub(crate) fn abandon(&self) {
        self.done
            .completed
            .store(self.enqueued.load(Relaxed), Relaxed);
        self.done.sm.store(self.enqueued_sm.load(Relaxed), Relaxed);
        self.done
            .occupancy
            .store(self.enqueued_occupancy.load(Relaxed), Relaxed);
        self.done
            .dram
            .store(self.enqueued_dram.load(Relaxed), Relaxed);
    }

    pub(crate) fn clear(&self) {
        let done = &self.done;
        for value in [
            &self.enqueued,
            &self.enqueued_sm,
            &self.enqueued_occupancy,
            &self.enqueued_dram,
            &self.started_ns,
            &done.completed,
            &done.sm,
            &done.occupancy,
            &done.dram,
            &done.busy_ns,
            &done.segment_count,
        ] {
            value.store(0, Relaxed);
        }
    }

    /// Mean share (0..1) of the pending work in one respect.
    fn mean(&self, enqueued: &AtomicU64, done: &AtomicU64, pending: u64) -> f64 {
        let part = enqueued.load(Relaxed).saturating_sub(done.load(Relaxed));
        (part as f64 / pending as f64 / 1000.0).clamp(0.0, 1.0)
    }

    /// Completes `amount` of `pending` and returns the shares · ns that went with it.
    fn complete(&self, amount: u64, pending: u64, from: u64, to: u64) -> [u64; 3] {
        let done = &self.done;
        let part = |enqueued: &AtomicU64, done: &AtomicU64| {
            let left = enqueued.load(Relaxed).saturating_sub(done.load(Relaxed));
            let share = (u128::from(left) * u128::from(amount) / u128::from(pending.max(1))) as u64;
            done.fetch_add(share, Relaxed);
            share
        };
        let shares = [
            part(&self.enqueued_sm, &done.sm),
            part(&self.enqueued_occupancy, &done.occupancy),
            part(&self.enqueued_dram, &done.dram),
        ];
        done.busy_ns.fetch_add(to - from, Relaxed);
        let position = done.completed.load(Relaxed);
        self.note_segment(from, position, to, position + amount);
        done.completed.store(position + amount, Release);
        shares
    }

    fn note_segment(&self, from_ns: u64, from_position: u64, to_ns: u64, to_position: u64) {
        let count = self.done.segment_count.load(Relaxed);
        // Steady progress is one segment however often it is evaluated, so that the memory of the
        // past reaches far back.
        let last = count
            .checked_sub(1)
            .map(|c| &self.segments[(c % MAX_SEGMENTS as u64) as usize]);
        if let Some(last) =
            last.filter(|last| last.continues(from_ns, to_ns, to_position - from_position))
        {
            last.to_ns.store(to_ns, Relaxed);
            last.to_position.store(to_position, Relaxed);
            return;
        }
        let segment = &self.segments[(count % MAX_SEGMENTS as u64) as usize];
        segment.from_ns.store(from_ns, Relaxed);
        segment.from_position.store(from_position, Relaxed);
        segment.to_ns.store(to_ns, Relaxed);
        segment.to_position.store(to_position, Relaxed);
        self.done.segment_count.store(count + 1, Relaxed);
    }

    /// When `position` was reached; for old positions the earliest time still known.
    fn time_of(&self, position: u64) -> Option<u64> {
        let count = self.done.segment_count.load(Relaxed);
        let known = count.min(MAX_SEGMENTS as u64);
        let mut found = None;
        for back in 0..known {
            let segment = &self.segments[((count - 1 - back) % MAX_SEGMENTS as u64) as usize];
            let to_position = segment.to_position.load(Relaxed);
            if to_position < position {
                break;
            }
            let (from_ns, to_ns) = (segment.from_ns.load(Relaxed), segment.to_ns.load(Relaxed));
            let from_position = segment.from_position.load(Relaxed);
            let inside = position.saturating_sub(from_position) as f64;
            let length = to_position.saturating_sub(from_position).max(1) as f64;
            found = Some(from_ns + ((to_ns - from_ns) as f64 * (inside / length)) as u64);
        }
        found
    }
}

impl Segment {
    /// Whether progress of `amount` from `from_ns` to `to_ns` goes on from here at the same pace,
    /// to 0.5 %.
    fn continues(&self, from_ns: u64, to_ns: u64, amount: u64) -> bool {
        let end = self.to_ns.load(Relaxed);
        let length = end.saturating_sub(self.from_ns.load(Relaxed)).max(1) as f64;
        let done = self
            .to_position
            .load(Relaxed)
            .saturating_sub(self.from_position.load(Relaxed));
        let pace = done as f64 / length;
        let next = amount as f64 / to_ns.saturating_sub(from_ns).max(1) as f64;
        end == from_ns && (pace - next).abs() <= 0.005 * pace
    }
}

impl GpuState {
    fn take_sample(&self, now: u64) {
        let count = self.sample_count.load(Relaxed);
        let newest = count
            .checked_sub(1)
            .map(|c| &self.samples[(c % MAX_SAMPLES as u64) as usize]);
        if newest.is_some_and(|s| now.saturating_sub(s.at_ns.load(Relaxed)) < SAMPLE_NS) {
            return;
        }
        let sample = &self.samples[(count % MAX_SAMPLES as u64) as usize];
        sample.at_ns.store(now, Relaxed);
        sample.busy_ns.store(self.busy_ns.load(Relaxed), Relaxed);
        sample
            .dram_active
            .store(self.dram_active.load(Relaxed), Relaxed);
        self.sample_count.store(count + 1, Relaxed);
    }
}

impl Machine {
    /// Share of recent time (0..1) with a kernel running, and of DRAM active: over the last 1/6 s
    /// or a little more, as NVML's utilisation rates are.
    pub fn recent_utilization(&self, gpu: usize) -> (f64, f64) {
        let line = &self.state().gpus[gpu];
        let _guard = line.lock.lock();
        let now = now_ns();
        self.evaluate(gpu, now);
        let count = line.sample_count.load(Relaxed);
        let known = (0..count.min(MAX_SAMPLES as u64))
            .map(|back| &line.samples[((count - 1 - back) % MAX_SAMPLES as u64) as usize]);
        let old_enough = |s: &&Sample| now.saturating_sub(s.at_ns.load(Relaxed)) >= WINDOW_NS;
        let since = known.clone().find(old_enough).or(known.last());
        let (at, busy, dram) = since.map_or((0, 0, 0), |s| {
            (
                s.at_ns.load(Relaxed),
                s.busy_ns.load(Relaxed),
                s.dram_active.load(Relaxed),
            )
        });
        let length = now.saturating_sub(at).max(1) as f64;
        let busy = (line.busy_ns.load(Relaxed) - busy) as f64 / length;
        let dram = (line.dram_active.load(Relaxed) - dram) as f64 / 1000.0 / length;
        (busy.min(1.0), dram.min(1.0))
    }

    /// Evaluates the time line of a GPU up to now.
    pub fn advance(&self, gpu: usize) {
        let _guard = self.state().gpus[gpu].lock.lock();
        self.evaluate(gpu, now_ns());
    }

    fn running(&self, gpu: usize) -> Vec<Running<'_>> {
        let memory = self
            .config()
            .gpus
            .get(gpu)
            .map_or(1, |g| g.memory_bytes.max(1)) as f64;
        let live = self
            .state()
            .processes
            .iter()
            .filter(|p| p.status.load(Acquire) == LIVE);
        live.filter(|p| p.hung.load(Relaxed) == 0)
            .filter_map(|process| {
                let own = &process.gpus[gpu];
                let queue = &own.queue;
                let pending = queue.pending();
                let demand = Demand {
                    sm: queue.mean(&queue.enqueued_sm, &queue.done.sm, pending),
                    dram: queue.mean(&queue.enqueued_dram, &queue.done.dram, pending),
                    memory: (own.held() as f64 / memory).min(1.0),
                };
                (pending > 0).then_some(Running {
                    queue,
                    pending,
                    demand,
                })
            })
            .collect()
    }

    /// Call with the GPU's lock held.
    fn evaluate(&self, gpu: usize, now: u64) {
        let line = &self.state().gpus[gpu];
        let mut at = line.evaluated_ns.load(Relaxed);
        let queued = if at < now {
            self.running(gpu)
        } else {
            Vec::new()
        };
        let mut left: Vec<u64> = queued.iter().map(|r| r.pending).collect();
        while at < now {
            let begun = |r: &Running<'_>| r.queue.started_ns.load(Relaxed) <= at;
            let active: Vec<usize> = (0..queued.len())
                .filter(|&i| left[i] > 0 && begun(&queued[i]))
                .collect();
            let later = queued
                .iter()
                .zip(&left)
                .filter(|(r, l)| **l > 0 && !begun(r));
            let horizon = later
                .map(|(r, _)| r.queue.started_ns.load(Relaxed))
                .min()
                .unwrap_or(now)
                .min(now);
            if active.is_empty() {
                at = horizon;
                continue;
            }
            let demands: Vec<Demand> = active.iter().map(|&i| queued[i].demand).collect();
            let slow = slowdowns(&demands);
            let first_end = active
                .iter()
                .zip(&slow)
                .map(|(&i, s)| at + (left[i] as f64 * s).ceil() as u64)
                .min();
            let until = first_end.unwrap_or(horizon).min(horizon).max(at + 1);
            let mut sums = [0u64; 3];
            for (&i, s) in active.iter().zip(&slow) {
                let amount = (((until - at) as f64 / s).round() as u64).min(left[i]);
                let shares = queued[i].queue.complete(amount, left[i], at, until);
                left[i] -= amount;
                for (sum, share) in sums.iter_mut().zip(shares) {
                    *sum += share;
                }
            }
            // Shares of processes that overlap add up, but no unit is more than always active.
            let most = (until - at) * 1000;
            line.busy_ns.fetch_add(until - at, Relaxed);
            line.sm_active.fetch_add(sums[0].min(most), Relaxed);
            line.sm_occupancy.fetch_add(sums[1].min(most), Relaxed);
            line.dram_active.fetch_add(sums[2].min(most), Relaxed);
            at = until;
        }
        line.evaluated_ns.store(at.max(now), Relaxed);
        line.take_sample(now);
    }
}

impl Process<'_> {
    fn queue(&self, gpu: usize) -> &Queue {
        &self.state().gpus[gpu].queue
    }

    /// Queues a kernel; returns the queue position at which it will be done. Takes no lock.
    pub fn push(&self, gpu: usize, cost: &Cost) -> u64 {
        let queue = self.queue(gpu);
        let now = now_ns();
        let line = &self.machine.state().gpus[gpu];
        let pending = queue.pending();
        if pending > 0
            && now.saturating_sub(line.evaluated_ns.load(Relaxed)) > STALE_NS
            && let Some(_guard) = line.lock.try_lock()
        {
            self.machine.evaluate(gpu, now);
        }
        if queue.pending() == 0 {
            queue.started_ns.store(now, Relaxed);
        }
        let duration = self.machine.scaled(cost.duration_ns);
        queue
            .enqueued_sm
            .fetch_add(duration * u64::from(cost.sm_active), Relaxed);
        queue
            .enqueued_occupancy
            .fetch_add(duration * u64::from(cost.sm_occupancy), Relaxed);
        queue
            .enqueued_dram
            .fetch_add(duration * u64::from(cost.dram_active), Relaxed);
        queue.enqueued.fetch_add(duration, Release) + duration
    }

    /// Position at which all work queued so far is done.
    pub fn tail(&self, gpu: usize) -> u64 {
        self.queue(gpu).enqueued.load(Acquire)
    }

    /// Whether the work up to `position` is done.
    pub fn is_done(&self, gpu: usize, position: u64) -> bool {
        let queue = self.queue(gpu);
        if queue.done.completed.load(Acquire) >= position {
            return true;
        }
        self.machine.advance(gpu);
        queue.done.completed.load(Acquire) >= position
    }

    /// Sleeps until the work up to `position` is done.
    pub fn wait(&self, gpu: usize, position: u64) {
        let mut last_reap = now_ns();
        while !self.is_done(gpu, position) {
            let queue = self.queue(gpu);
            let left = position.saturating_sub(queue.done.completed.load(Acquire));
            let (pace, shared) = self.pace(gpu);
            let sleep = ((left as f64 * pace) as u64).clamp(1_000, SLICE_NS);
            std::thread::sleep(Duration::from_nanos(sleep));
            if shared && now_ns().saturating_sub(last_reap) > REAP_NS {
                self.machine.reap();
                last_reap = now_ns();
            }
        }
    }

    /// Present slowdown, and whether others run.
    fn pace(&self, gpu: usize) -> (f64, bool) {
        let own: *const Queue = self.queue(gpu);
        let running = self.machine.running(gpu);
        let demands: Vec<Demand> = running.iter().map(|r| r.demand).collect();
        let slow = slowdowns(&demands);
        let mine = running.iter().position(|r| std::ptr::eq(r.queue, own));
        (
            mine.and_then(|i| slow.get(i).copied()).unwrap_or(1.0),
            running.len() > 1,
        )
    }

    /// When the work up to `position` was done (ns of [`now_ns`]); the present if not known.
    pub fn time_of(&self, gpu: usize, position: u64) -> u64 {
        let _guard = self.machine.state().gpus[gpu].lock.lock();
        self.machine.evaluate(gpu, now_ns());
        self.queue(gpu).time_of(position).unwrap_or_else(now_ns)
    }

    /// Drops queued work, as when a context is destroyed.
    pub fn abandon(&self, gpu: usize) {
        let _guard = self.machine.state().gpus[gpu].lock.lock();
        self.machine.evaluate(gpu, now_ns());
        self.queue(gpu).abandon();
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
