//! What the library adds to one call.

use std::sync::atomic::Ordering::SeqCst;

use aegis_common::abi::ledger::{GpuLine, LaunchLine};
use aegis_shim_tests::sys::Ledger;
use anyhow::{Context, Result, ensure};

use super::client::{Clients, Preload, Run, Way, typical};
use crate::report::Figure;
use crate::stats::Stats;

/// Runs of each kind, taken in turns.
const PAIRS: usize = 9;
/// Rounds within a run; the middle one counts.
const ROUNDS: u64 = 9;
/// Bytes of each of the client's blocks.
const BLOCK: u64 = 2 << 20;

/// What is called.
#[derive(Clone, Copy)]
enum Work {
    /// One of the client's launch cases.
    Launch(&'static str),
    /// A free and an allocation of 2 MiB with so many blocks live.
    Pairs(u64, &'static str),
    /// `cuMemGetInfo`; with a declared total it is answered for the job.
    MemInfo { declared: bool },
}

impl Work {
    /// Calls in a round: some milliseconds.
    const fn calls(self) -> u64 {
        match self {
            Self::Launch(_) => 2_000_000,
            Self::Pairs(..) => 200_000,
            Self::MemInfo { .. } => 1_000_000,
        }
    }

    fn arguments(self) -> Vec<String> {
        let (name, rest) = match self {
            Self::Launch(name) => (name, Vec::new()),
            Self::Pairs(live, order) => ("pairs", vec![live.to_string(), order.to_owned()]),
            Self::MemInfo { .. } => ("mem_info", Vec::new()),
        };
        let numbers = [ROUNDS, self.calls()].map(|number| number.to_string());
        std::iter::once(name.to_owned())
            .chain(numbers)
            .chain(rest)
            .collect()
    }

    /// The ledger must hold what the client did.
    fn compare(self, run: &Run, ledger: &Ledger) -> Result<()> {
        let launches = |field: fn(&LaunchLine) -> u64| ledger.launch_lines().map(field).sum();
        let kernels: u64 = launches(|line| line.kernels.load(SeqCst));
        let gpu: &GpuLine = ledger.gpu(0);
        let (allocs, frees) = (gpu.allocs.load(SeqCst), gpu.frees.load(SeqCst));
        let expected = match self {
            Self::Launch(_) => (run.calls, 0, 0),
            Self::Pairs(live, _) => (0, run.calls + live, run.calls + live),
            Self::MemInfo { .. } => (0, 1, 0),
        };
        ensure!(
            (kernels, allocs, frees) == expected,
            "the ledger counted {kernels} launches, {allocs} allocations, {frees} frees; \
             (launches, allocations, frees) made: {expected:?}"
        );
        let held: u64 = gpu.used.iter().map(|used| used.load(SeqCst)).sum();
        let left = match self {
            Self::MemInfo { .. } => BLOCK,
            _ => 0,
        };
        ensure!(held == left, "the ledger holds {held} bytes, not {left}");
        Ok(())
    }
}

/// Measures.
///
/// # Errors
/// A client failed, or the ledger has not counted what it did.
pub(super) fn measure(clients: &Clients) -> Result<Vec<Figure>> {
    let launch = |name, meaning, way, case| Part {
        name,
        meaning,
        way,
        work: Work::Launch(case),
    };
    let gpa12 = |name, meaning, work| Part {
        name,
        meaning,
        way: Way::Gpa12,
        work,
    };
    let all = |parts: &[Part]| {
        let figures = parts.iter().map(|part| part.measure(clients));
        figures.collect::<Result<Vec<_>>>()
    };
    let launches = all(&[
        launch(
            "launch_gpa12_ns",
            "cuLaunchKernel found by cuGetProcAddress_v2",
            Way::Gpa12,
            "launch",
        ),
        launch(
            "launch_gpa11_ns",
            "by cuGetProcAddress",
            Way::Gpa11,
            "launch",
        ),
        launch("launch_dlsym_ns", "by dlsym", Way::Dlsym, "launch"),
        launch("launch_direct_ns", "linked", Way::Direct, "launch"),
        launch(
            "launch_ptds_gpa12_ns",
            "cuLaunchKernel_ptsz, for per-thread default streams, found by cuGetProcAddress_v2",
            Way::Gpa12,
            "launch_ptsz",
        ),
        launch(
            "launch_ptds_dlsym_ns",
            "the same by dlsym",
            Way::Dlsym,
            "launch_ptsz",
        ),
    ])?;
    let two = Figure {
        target: Some(6.0),
        ..launch(
            "launch_overhead_2t_ns",
            "CPU time added to a launch while two threads launch at once",
            Way::Gpa12,
            "launch_2t",
        )
        .measure(clients)?
    };
    let pairs = all(&[
        gpa12(
            "alloc_free_10_live_ns",
            "cuMemFree of the oldest of 10 blocks and cuMemAlloc of another",
            Work::Pairs(10, "oldest"),
        ),
        gpa12(
            "alloc_free_1000_live_ns",
            "of 1,000 blocks",
            Work::Pairs(1_000, "oldest"),
        ),
        gpa12(
            "alloc_free_newest_ns",
            "of 1,000 blocks the newest",
            Work::Pairs(1_000, "newest"),
        ),
        gpa12(
            "alloc_free_100k_live_ns",
            "of 100,000 blocks",
            Work::Pairs(100_000, "oldest"),
        ),
    ])?;
    let infos = all(&[
        gpa12(
            "mem_info_plain_ns",
            "cuMemGetInfo of a job that declared nothing",
            Work::MemInfo { declared: false },
        ),
        gpa12(
            "mem_info_declared_ns",
            "cuMemGetInfo of a job with --gpu-mem",
            Work::MemInfo { declared: true },
        ),
    ])?;
    let launch = Figure::worst(
        "launch_overhead_ns",
        "CPU time added to a launch: the worst of the next six",
        3.0,
        &launches,
    );
    let pair = Figure::worst(
        "alloc_free_overhead_ns",
        "CPU time added to an allocation and a free: the worst of the next four",
        100.0,
        &pairs,
    );
    let info = Figure::worst(
        "mem_info_overhead_ns",
        "CPU time added to cuMemGetInfo: the worse of the next two",
        10.0,
        &infos,
    );
    let summary = |figure: Option<Figure>, limit| {
        let figure = figure.context("nothing was measured")?;
        anyhow::Ok(vec![figure.limited(limit)])
    };
    Ok([
        summary(launch, 5.0)?,
        launches,
        vec![two],
        summary(pair, 150.0)?,
        pairs,
        summary(info, 50.0)?,
        infos,
    ]
    .concat())
}

/// One thing that is measured.
struct Part {
    name: &'static str,
    meaning: &'static str,
    way: Way,
    work: Work,
}

impl Part {
    fn measure(&self, clients: &Clients) -> Result<Figure> {
        let declared = matches!(self.work, Work::MemInfo { declared: true });
        let arguments = self.work.arguments();
        let run = |preload| {
            let run = clients.run(self.way, preload, declared, &arguments)?;
            if let Some(ledger) = &run.ledger {
                self.work.compare(&run, ledger).context(self.name)?;
            }
            typical(&run)
        };
        let preloads = clients.preloads();
        let mut added = vec![Vec::new(); preloads.len()];
        for _ in 0..PAIRS {
            let bare = run(Preload::Nothing)?;
            for (preload, added) in preloads.iter().zip(&mut added) {
                added.push(run(*preload)? - bare);
            }
        }
        let mut stats = added.into_iter().map(Stats::of);
        let own = stats.next().flatten().context("nothing was measured")?;
        Ok(Figure::new(self.name, self.meaning, None, own).beside(stats.next().flatten()))
    }
}
