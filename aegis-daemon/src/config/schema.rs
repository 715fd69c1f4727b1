//! Every key of the file, once: its name, its documentation, its field and its range.

use std::time::Duration;

use aegis_common::policy::{Mode, Order, Placement, Policy};

use super::setting::{
    AbsolutePath, Choice, Count, Flag, Library, Names, Setting, Share, Size, Span,
};
use super::{Config, Daemon, Jobs, LogLevel, Shim, Telemetry};

/// What is done with each key.
pub(super) trait Visit {
    /// The following keys belong to this table.
    fn table(&mut self, name: &'static str, doc: &'static str);
    /// A key of the current table.
    fn key(&mut self, name: &'static str, doc: &'static str, setting: &mut dyn Setting);
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Longest time a job may take to save its state: an older job may wait for its GPU meanwhile.
pub(crate) const SUSPEND_GRACE_MAX: Duration = seconds(3600);
const DAY: Duration = seconds(86_400);
/// `humantime`'s year, 365.25 days, so that the bound reads as one.
const YEAR: Duration = seconds(31_557_600);

/// Shows every key to `visit`, tables and keys in the order of the documentation.
pub(super) fn walk(config: &mut Config, visit: &mut impl Visit) {
    daemon(&mut config.daemon, visit);
    scheduler(&mut config.scheduler, visit);
    jobs(&mut config.jobs, visit);
    telemetry(&mut config.telemetry, visit);
    shim(&mut config.shim, visit);
}

fn daemon(daemon: &mut Daemon, visit: &mut impl Visit) {
    visit.table("daemon", "The process aegisd and who may command it.");
    visit.key(
        "state_dir",
        "Journal, job records and logs. Must survive a reboot.",
        &mut AbsolutePath(&mut daemon.state_dir),
    );
    visit.key(
        "runtime_dir",
        "Sockets, ledgers and lease pages. Best on tmpfs.",
        &mut AbsolutePath(&mut daemon.runtime_dir),
    );
    visit.key(
        "socket",
        "Where aegis connects; at most 107 bytes. Default: aegis.sock in runtime_dir.",
        &mut AbsolutePath(&mut daemon.socket),
    );
    visit.key(
        "shim_socket",
        "Where the shim in each job connects; at most 107 bytes. Default: shim.sock in runtime_dir.",
        &mut AbsolutePath(&mut daemon.shim_socket),
    );
    let shown = daemon.admins.users.clone();
    visit.key(
        "admin_users",
        "Users who may act on everybody's jobs, besides root.",
        &mut Names {
            shown,
            store: &mut |names| daemon.admins.set_users(names),
        },
    );
    let shown = daemon.admins.groups.clone();
    visit.key(
        "admin_groups",
        "Groups whose members may act on everybody's jobs.",
        &mut Names {
            shown,
            store: &mut |names| daemon.admins.set_groups(names),
        },
    );
    visit.key(
        "log_level",
        "Least severe messages that are logged.",
        &mut Choice(
            &mut daemon.log_level,
            &[
                ("error", LogLevel::Error),
                ("warn", LogLevel::Warn),
                ("info", LogLevel::Info),
                ("debug", LogLevel::Debug),
                ("trace", LogLevel::Trace),
            ],
        ),
    );
}

fn scheduler(policy: &mut Policy, visit: &mut impl Visit) {
    visit.table("scheduler", "Which GPU may take one more job, and when.");
    visit.key(
        "mode",
        "How eagerly GPUs are shared. \"gate\": the pressure gate below decides. \"balanced\" and\n\"throughput\": it closes at .07 and .15 more SM and DRAM activity. \"gentle\": at .05 less, and where\nGPM counters are there a job joins only if the work gained is worth the slowdown expected.",
        &mut Choice(
            &mut policy.mode,
            &[
                ("gate", Mode::Gate),
                ("gentle", Mode::Gentle),
                ("balanced", Mode::Balanced),
                ("throughput", Mode::Throughput),
            ],
        ),
    );
    visit.key(
        "order",
        "Which pending job of a priority is looked at first. \"fifo\": users in turn. \"shortest\": by the\nrunning time learned from earlier runs; a job can be overtaken for 20 times that at most.",
        &mut Choice(
            &mut policy.order,
            &[("fifo", Order::Fifo), ("shortest", Order::Shortest)],
        ),
    );
    visit.key(
        "host_bound",
        "Slowdowns are unknown, and have no consequence, while tasks wait for CPUs or I/O this share of\nthe time.",
        &mut Share(&mut policy.host_bound, 1..=1000),
    );
    visit.key(
        "placement",
        "Which fitting GPU is taken first. Idle GPUs always come before occupied ones.",
        &mut Choice(
            &mut policy.placement,
            &[
                ("most-available-memory", Placement::MostAvailableMemory),
                ("least-utilised", Placement::LeastUtilised),
                ("best-fit", Placement::BestFit),
                ("round-robin", Placement::RoundRobin),
                ("exclusive", Placement::Exclusive),
            ],
        ),
    );
    visit.key(
        "max_residents",
        "Jobs on one GPU at most; 0: no limit.",
        &mut Count(&mut policy.max_residents, 0..=1024),
    );
    visit.key(
        "share_with_foreign",
        "Share GPUs with processes that were not submitted. Rootless daemons never do.",
        &mut Flag(&mut policy.share_with_foreign),
    );
    memory(policy, visit);
    gate(policy, visit);
    observation(policy, visit);
    fairness(policy, visit);
}

fn memory(policy: &mut Policy, visit: &mut impl Visit) {
    visit.key(
        "first_lease",
        "Memory promised at start to a job that declared none with --gpu-mem; an eighth of the GPU\nat most. It grows with the job.",
        &mut Size(&mut policy.first_lease, 64 * MIB..=TIB),
    );
    visit.key(
        "lease_chunk",
        "A lease grows by this much at least.",
        &mut Size(&mut policy.lease_chunk, 2 * MIB..=16 * GIB),
    );
    visit.key(
        "context_reserve",
        "Reserved per process and GPU for the CUDA context until NVML shows the real figure.",
        &mut Size(&mut policy.context_reserve, 0..=16 * GIB),
    );
    visit.key(
        "guard",
        "Kept free on each GPU, at least.",
        &mut Size(&mut policy.guard_bytes, 0..=64 * GIB),
    );
    visit.key(
        "guard_share",
        "Share of each GPU kept free, at least.",
        &mut Share(&mut policy.guard_permille, 0..=500),
    );
    visit.key(
        "peak_margin",
        "Added to a learned peak, as a share of it; lease_chunk at least.",
        &mut Share(&mut policy.peak_margin_permille, 0..=1000),
    );
    visit.key(
        "grow_wait",
        "Longest time an allocation waits for younger jobs to make room.",
        &mut Span(&mut policy.grow_wait_ms, ms(0)..=seconds(20)),
    );
}

fn gate(policy: &mut Policy, visit: &mut impl Visit) {
    visit.key(
        "gate_sm_active",
        "With GPM counters a GPU is busy, and takes no further job, when SM activity reaches\nthis and SM occupancy or DRAM activity theirs.",
        &mut Share(&mut policy.gate_sm_active, 1..=1000),
    );
    visit.key(
        "gate_sm_occupancy",
        "See gate_sm_active.",
        &mut Share(&mut policy.gate_sm_occupancy, 1..=1000),
    );
    visit.key(
        "gate_dram_active",
        "See gate_sm_active.",
        &mut Share(&mut policy.gate_dram_active, 1..=1000),
    );
    visit.key(
        "gate_utilisation",
        "Where only NVML utilisation is available, a GPU is busy when it reaches this.",
        &mut Share(&mut policy.gate_utilisation, 1..=1000),
    );
    visit.key(
        "gate_window",
        "Samples that are averaged before they are compared.",
        &mut Count(&mut policy.gate_window, 1..=1000),
    );
    visit.key(
        "stale_after",
        "Without a valid sample for this long, a GPU is not shared.",
        &mut Span(&mut policy.stale_after_ms, ms(100)..=seconds(600)),
    );
}

fn observation(policy: &mut Policy, visit: &mut impl Visit) {
    visit.key(
        "observe_min",
        "A GPU takes no further job for this long after a new job's first kernel launch.",
        &mut Span(&mut policy.observe_min_ms, ms(0)..=seconds(3600)),
    );
    visit.key(
        "observe_max",
        "Observation ends at the latest this long after the first launch.",
        &mut Span(&mut policy.observe_max_ms, ms(0)..=DAY),
    );
    visit.key(
        "plateau",
        "Memory has settled when its peak has not risen for this long.",
        &mut Span(&mut policy.plateau_ms, ms(0)..=seconds(3600)),
    );
    visit.key(
        "dormant_after",
        "A job that has launched nothing for this long is dormant: it keeps its memory, and the GPU\nreopens to jobs that may be stopped for it.",
        &mut Span(&mut policy.dormant_after_ms, seconds(1)..=YEAR),
    );
}

fn fairness(policy: &mut Policy, visit: &mut impl Visit) {
    visit.key(
        "max_evictions",
        "A job that was stopped this often for others is not stopped for others again.",
        &mut Count(&mut policy.max_evictions, 0..=1000),
    );
    visit.key(
        "reserve_after",
        "GPUs are kept for the head of the queue when it has waited this long.",
        &mut Span(&mut policy.reserve_after_ms, ms(0)..=YEAR),
    );
}

fn jobs(jobs: &mut Jobs, visit: &mut impl Visit) {
    visit.table(
        "jobs",
        "What a submission gets that does not say otherwise.",
    );
    visit.key(
        "default_requeue",
        "Jobs may be stopped and started again from the beginning to make room for older ones,\nunless submitted with --no-requeue.",
        &mut Flag(&mut jobs.default_requeue),
    );
    visit.key(
        "default_retries",
        "Further attempts after running out of GPU memory.",
        &mut Count(&mut jobs.default_retries, 0..=100),
    );
    visit.key(
        "default_time_limit",
        "Running time after which an attempt is stopped.",
        &mut Span(&mut jobs.default_time_limit, seconds(1)..=YEAR),
    );
    visit.key(
        "max_time_limit",
        "Longest --time-limit a user may ask for. If set, every job has a limit.",
        &mut Span(&mut jobs.max_time_limit, seconds(1)..=YEAR),
    );
    visit.key(
        "grace",
        "Between SIGTERM and SIGKILL when a job is stopped.",
        &mut Span(&mut jobs.grace, ms(0)..=seconds(3600)),
    );
    visit.key(
        "suspend_grace",
        "Between the signal of --on-suspend and SIGTERM where the submission does not say how long\nthe job needs to save its state.",
        &mut Span(&mut jobs.suspend_grace, seconds(1)..=SUSPEND_GRACE_MAX),
    );
    visit.key(
        "idle_after",
        "A GPU that a running job keeps from others this long without using it is reported.",
        &mut Span(&mut jobs.idle_after, seconds(1)..=YEAR),
    );
}

fn telemetry(telemetry: &mut Telemetry, visit: &mut impl Visit) {
    visit.table(
        "telemetry",
        "How often NVML is asked. Each question takes a lock in the driver: ask gently.",
    );
    visit.key(
        "nvml_library",
        "NVML's library; \"auto\" leaves the search for libnvidia-ml.so.1 to the dynamic linker.",
        &mut Library(&mut telemetry.nvml_library),
    );
    visit.key(
        "sample_interval",
        "Between two readings of memory in use and utilisation.",
        &mut Span(&mut telemetry.sample_interval, ms(20)..=seconds(60)),
    );
    visit.key(
        "gpm_interval",
        "Between two GPM samples.",
        &mut Span(&mut telemetry.gpm_interval, ms(20)..=seconds(60)),
    );
    visit.key(
        "process_interval",
        "Between two readings of the process lists.",
        &mut Span(&mut telemetry.process_interval, ms(20)..=seconds(60)),
    );
    visit.key(
        "pressure_dir",
        "Linux's pressure stall information. While tasks wait for CPUs or disks more than\nscheduler.host_bound of the time, no slowdown is known.",
        &mut AbsolutePath(&mut telemetry.pressure_dir),
    );
}

fn shim(shim: &mut Shim, visit: &mut impl Visit) {
    visit.table("shim", "The library that is preloaded into each job.");
    visit.key(
        "library",
        "libaegis_shim.so; \"auto\" looks beside aegisd, then in ../lib/aegis, /usr/local/lib/aegis\nand /usr/lib/aegis.",
        &mut Library(&mut shim.library),
    );
}
