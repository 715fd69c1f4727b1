//! Invariant 9: a journal replayed gives the same actions, and nothing in it breaks the core.

use aegis_common::action::Action;
use aegis_common::event::{Event, ForeignProcess, Gpu, GpuSample, ProcessGpu, Stamped};
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::job::{Exit, Resources};
use aegis_common::learned::Learned;
use aegis_common::policy::{Policy, Tier};
use proptest::prelude::*;

use super::random::{Happening, lives, play};
use crate::scheduler::Core;

fn through_json<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("serialises");
    serde_json::from_str(&text).expect("deserialises")
}

/// Replays, storing and loading core and events at `cut`.
fn replay(journal: &[(Stamped, Vec<Action>)], cut: usize) {
    let mut core = Core::new();
    for (index, (stamped, actions)) in journal.iter().enumerate() {
        if index == cut {
            let loaded: Core = through_json(&core);
            assert_eq!(loaded, core);
            core = loaded;
        }
        let stamped = through_json(stamped);
        assert_eq!(&core.step(stamped.at, &stamped.event), actions);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_journal_replayed_gives_the_same_actions(
        (policy, happenings) in lives(),
        cut in any::<prop::sample::Index>(),
    ) {
        // A daemon that comes back writes its state whole: a journal begins with it.
        let lived: Vec<Happening> = happenings
            .into_iter()
            .filter(|happening| !matches!(happening, Happening::Restart))
            .collect();
        let world = play(policy, &lived);
        replay(&world.journal, cut.index(world.journal.len()));
    }

    #[test]
    fn no_event_breaks_the_core(
        events in prop::collection::vec((any::<u8>(), event()), 0..80),
    ) {
        let mut core = Core::new();
        let mut at = Moment(0);
        for (delay, event) in events {
            // Sometimes time stands still, sometimes it jumps, sometimes it runs backwards.
            at = match delay {
                0..32 => Moment(u64::from(delay)),
                250.. => Moment(u64::MAX - u64::from(delay)),
                _ => at.plus_millis(u64::from(delay) * 100),
            };
            core.step(at, &event);
            for job in core.live().collect::<Vec<_>>() {
                let _blockers = core.explain(job, at);
                let _summary = core.job(job);
            }
            let _views = core.gpus(at);
            let _resumed = core.clone().resume();
        }
    }
}

fn job() -> impl Strategy<Value = JobId> {
    (0..4_u64).prop_map(JobId)
}

fn index() -> impl Strategy<Value = GpuIndex> {
    prop_oneof![9 => 0..3_u32, 1 => any::<u32>()].prop_map(GpuIndex)
}

fn process() -> impl Strategy<Value = ProcessKey> {
    (0..3_u32, 0..2_u64).prop_map(|(pid, start_ticks)| ProcessKey { pid, start_ticks })
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => any::<u64>(),
        2 => 0..(50_u64 << 30),
        1 => Just(u64::MAX),
        1 => Just(0),
    ]
}

fn tier() -> impl Strategy<Value = Tier> {
    prop_oneof![
        Just(Tier::Gpm),
        Just(Tier::Dcgm),
        Just(Tier::Utilisation),
        Just(Tier::None)
    ]
}

fn resources() -> impl Strategy<Value = Resources> {
    (
        prop_oneof![4 => 0..3_u32, 1 => any::<u32>()],
        prop::option::of(amount()),
        any::<i32>(),
        any::<bool>(),
        any::<bool>(),
        any::<u32>(),
        prop::option::of(amount()),
    )
        .prop_map(
            |(gpus, gpu_mem, priority, exclusive, requeue, retries, time_limit_s)| Resources {
                gpus,
                gpu_mem,
                priority,
                exclusive,
                requeue,
                retries,
                time_limit_s,
                on_suspend: None,
            },
        )
}

fn policy() -> impl Strategy<Value = Policy> {
    (any::<u16>(), any::<u16>(), amount(), amount(), any::<u32>()).prop_map(
        |(gate_window, permille, bytes, millis, wait)| Policy {
            gate_window,
            guard_permille: permille,
            peak_margin_permille: permille,
            guard_bytes: bytes,
            context_reserve: bytes,
            lease_chunk: bytes,
            first_lease: bytes,
            observe_min_ms: millis,
            observe_max_ms: millis,
            plateau_ms: millis,
            dormant_after_ms: millis,
            reserve_after_ms: millis,
            stale_after_ms: millis,
            grow_wait_ms: wait,
            ..Policy::default()
        },
    )
}

fn machine() -> impl Strategy<Value = Vec<Gpu>> {
    let gpu = (index(), amount(), tier()).prop_map(|(index, memory, tier)| Gpu {
        index,
        uuid: format!("GPU-{}", memory % 2),
        name: String::new(),
        memory,
        tier,
        peers: Vec::new(),
    });
    prop::collection::vec(gpu, 0..4)
}

fn sample() -> impl Strategy<Value = GpuSample> {
    let figure = || prop::option::of(any::<u16>());
    let foreign = (any::<u32>(), amount()).prop_map(|(pid, bytes)| ForeignProcess {
        pid,
        uid: None,
        command: None,
        bytes,
    });
    (
        index(),
        figure(),
        figure(),
        figure(),
        prop::option::of(amount()),
        prop::collection::vec(foreign, 0..3),
        prop::collection::vec((job(), amount()), 0..3),
    )
        .prop_map(
            |(gpu, sm_active, sm_occupancy, dram_active, used, foreign, jobs)| GpuSample {
                gpu,
                sm_active,
                sm_occupancy,
                dram_active,
                used,
                foreign,
                jobs,
            },
        )
}

fn report() -> impl Strategy<Value = ProcessGpu> {
    (
        index(),
        amount(),
        amount(),
        prop::option::of(amount()),
        prop::option::of(amount()),
    )
        .prop_map(|(gpu, used, inflight, nvml, refusal)| ProcessGpu {
            gpu,
            used,
            inflight,
            nvml,
            refusal,
        })
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![
        any::<i32>().prop_map(Exit::Code),
        any::<i32>().prop_map(Exit::Signal),
        Just(Exit::Unknown)
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let attempt = || prop_oneof![9 => 0..4_u32, 1 => any::<u32>()];
    let lifecycle = prop_oneof![
        (job(), 0..3_u32, resources()).prop_map(|(job, uid, resources)| Event::Submitted {
            job,
            uid,
            resources,
            learned: Learned::default(),
        }),
        (job(), any::<u32>()).prop_map(|(job, by)| Event::CancelRequested { job, by }),
        (job(), attempt(), prop::collection::vec(index(), 0..4))
            .prop_map(|(job, attempt, gpus)| Event::Started { job, attempt, gpus }),
        (job(), attempt()).prop_map(|(job, attempt)| Event::StartFailed {
            job,
            attempt,
            error: String::new()
        }),
        (job(), attempt(), exit()).prop_map(|(job, attempt, exit)| Event::Ended {
            job,
            attempt,
            exit
        }),
    ];
    let process_life = prop_oneof![
        (job(), process()).prop_map(|(job, process)| Event::ProcessAttached { job, process }),
        (job(), process()).prop_map(|(job, process)| Event::ProcessUninstrumented { job, process }),
        (job(), process()).prop_map(|(job, process)| Event::ProcessGone { job, process }),
        (job(), process()).prop_map(|(job, process)| Event::FirstLaunch { job, process }),
        (
            job(),
            process(),
            amount(),
            prop::collection::vec(report(), 0..3)
        )
            .prop_map(|(job, process, launches, gpus)| Event::Usage {
                job,
                process,
                launches,
                gpus
            }),
    ];
    let grow = (
        0..20_u64,
        job(),
        process(),
        index(),
        amount(),
        amount(),
        any::<u32>(),
    )
        .prop_map(
            |(request, job, process, gpu, bytes, held, try_number)| Event::Grow {
                request,
                job,
                process,
                gpu,
                bytes,
                held,
                try_number,
            },
        );
    prop_oneof![
        8 => lifecycle,
        4 => process_life,
        4 => grow,
        3 => sample().prop_map(|sample| Event::Sampled { sample }),
        2 => machine().prop_map(|gpus| Event::MachineFound { gpus }),
        1 => policy().prop_map(|policy| Event::Configured { policy }),
        1 => (0..20_u64).prop_map(|request| Event::GrowAbandoned { request }),
        1 => prop::option::of(Just("full".to_owned())).prop_map(|error| Event::JournalState { error }),
        2 => Just(Event::Woken),
    ]
}
