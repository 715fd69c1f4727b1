//! How views look, word for word, and that nothing hostile in them reaches a terminal.

use aegis_common::job::{Exit, JobState, OomFinal, Outcome, Slowdown, SlowdownUnknown};
use aegis_common::wire::{Explanation, QueueView};

use super::super::sanitise::is_active;
use super::super::style::Style;
use super::super::style::tests::plain;
use super::samples::{
    self, HOSTILE, done, explanation, gpu, hostile, inspection, pending, running,
};
use super::{explanation as explain, gpu as gpus, job, ledger, queue};

#[test]
fn the_queue() {
    let failed = Outcome::Failed {
        exit: Exit::Code(3),
    };
    let view = QueueView {
        jobs: vec![running(7), pending(12), done(3, failed)],
        pending: 1,
        running: 1,
    };
    assert_eq!(
        queue::render(&view, false, &plain()),
        "\
ID  STATE      USER  NAME   GPU  USED/LEASE    TIME  TRY  REASON
 7  running    ana   train  0,1  12.0/14.0G   8m20s    2
12  pending    ana   train  (1)     -/20.0G  12m05s    1  GPU 0: held exclusively by job 3
 3  failed(3)  ana   train  0          5.0G   1m00s    1
1 running, 1 pending
"
    );
}

#[test]
fn the_queue_fits_a_narrow_terminal() {
    let mut long = pending(12);
    long.name = "a-very-long-name-of-a-job".into();
    let view = QueueView {
        jobs: vec![long],
        pending: 1,
        running: 0,
    };
    let style = Style {
        width: Some(70),
        ..plain()
    };
    let text = queue::render(&view, false, &style);
    for line in text.lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 70, "{line}");
    }
    assert!(text.contains('…'));
}

#[test]
fn an_empty_queue_says_how_to_submit() {
    let view = QueueView {
        jobs: vec![],
        pending: 0,
        running: 0,
    };
    assert!(queue::render(&view, false, &plain()).contains("aegis submit -- python train.py"));
    assert_eq!(queue::render(&view, true, &plain()), "No such jobs.\n");
}

#[test]
fn a_job() {
    assert_eq!(
        job::render(&running(7), &plain()),
        "\
Job 7: train
  state      running; observed: its GPU may take other jobs
  user       ana
  command    python train.py 'a b'
  directory  '/home/ana/my work'
  asked for  1 GPU with 20.00 GiB each, priority -5, 3 retries, requeue, at most 4h
  submitted  2026-01-02 02:52:00
  started    2026-01-02 02:54:05
  next try   starts with 7.00 GiB on each GPU
  GPU 0      6.00 GiB used, peak 6.50 GiB, lease 7.00 GiB, overhead reserve 512.00 MiB
  GPU 1      6.00 GiB used, peak 6.50 GiB, lease 7.00 GiB, overhead reserve 512.00 MiB
  slowdown   takes 1.32 times as long as alone
  attempt 1  GPU 0, 1m00s, peak 5.00 GiB, exit code 1; tried again: out of memory on GPU 0: \
1.00 GiB refused at a peak of 5.00 GiB; next attempt with 7.00 GiB
             log /var/lib/aegis/logs/7.1.log
  attempt 2  GPU 0,1, 8m20s, peak 6.50 GiB
             log /var/lib/aegis/logs/7.2.log
"
    );
}

#[test]
fn an_explanation_of_waiting() {
    assert_eq!(
        explain::render(&explanation(12), &pending(12), &plain()),
        "\
Job 12: train is pending, place 2 in the queue
It waits because of:
  1. GPU 0: needs 20.00 GiB, 11.00 GiB available (60.00 GiB promised to jobs, 1.00 GiB used \
outside AEGIS, 1.00 GiB guard) [gpu_memory]
     clears when 9.00 GiB more is released there, or submit with a smaller --gpu-mem
  2. 1 jobs are ahead, the next is job 5 [behind]
     clears when job 5 has started or ended
So far:
  - attempt 1 ran out of memory
"
    );
}

#[test]
fn an_explanation_of_an_end() {
    let outcome = Outcome::Oom {
        exit: Exit::Code(1),
        why: OomFinal::WasExclusive,
    };
    let over = done(3, outcome.clone());
    let explanation = Explanation {
        state: JobState::Done { outcome },
        blockers: vec![],
        history: vec![],
        ..explanation(3)
    };
    assert_eq!(
        explain::render(&explanation, &over, &plain()),
        "\
Job 3: train is over: out of GPU memory (exit code 1), final because it had its GPUs to itself
  attempt 1: GPU 0, 1m00s, peak 5.00 GiB, exit code 1
"
    );
}

#[test]
fn gpus_with_residents_and_strangers() {
    assert_eq!(
        gpus::render(&[gpu()], &[running(7)], &plain()),
        "\
GPU 0  NVIDIA H200  12.00 GiB of 140.00 GiB used, 15.00 GiB promised, 2.00 GiB outside AEGIS, \
1.00 GiB guard, 122.00 GiB available  [GPM: SM 64.5 %, occupancy 20.0 %]
  job 7 train (ana), 6.00 GiB of a lease of 7.00 GiB
  job 8
  outside AEGIS: process 4242 jupyter (4000000001), 2.00 GiB
"
    );
    assert!(gpus::render(&[], &[], &plain()).contains("aegis doctor"));
    let mut lost = gpu();
    lost.lost = true;
    assert!(gpus::render(&[lost], &[], &plain()).contains("does not answer"));
}

#[test]
fn what_a_job_does_not_use_is_told_everywhere() {
    let mut wasteful = running(7);
    let idle = |gpu, dormant| aegis_common::wire::IdleGpu {
        gpu: aegis_common::id::GpuIndex(gpu),
        since: samples::ago(725),
        dormant,
    };
    wasteful.idle = vec![idle(1, false), idle(0, true)];
    let view = QueueView {
        jobs: vec![wasteful.clone()],
        pending: 0,
        running: 1,
    };
    let list = queue::render(&view, false, &plain());
    assert!(list.contains("2  GPU 1,0 idle for 12m05s\n"), "{list}");
    let text = job::render(&wasteful, &plain());
    let (one, two) = (
        "\n  GPU 1      idle: no memory held there for 12m05s\n",
        "\n  GPU 0      idle: nothing was launched for 12m05s\n",
    );
    assert!(text.contains(one) && text.contains(two), "{text}");
    let text = gpus::render(&[gpu()], &[wasteful], &plain());
    let line = "lease of 7.00 GiB, idle: nothing was launched for 12m05s\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_slowdown_that_is_not_known_says_why() {
    let mut job = running(7);
    job.slowdown = Some(Slowdown::Measured { permille: 1000 });
    let text = job::render(&job, &plain());
    assert!(
        text.contains("\n  slowdown   none: as fast as alone\n"),
        "{text}"
    );
    for (why, word) in [
        (SlowdownUnknown::NotLaunching, "nothing was launched"),
        (SlowdownUnknown::NoPeriod, "did not repeat"),
        (SlowdownUnknown::NeverAlone, "to itself"),
        (SlowdownUnknown::CpuBound, "CPUs"),
        (SlowdownUnknown::IoBound, "I/O"),
    ] {
        job.slowdown = Some(Slowdown::Unknown { why });
        let text = job::render(&job, &plain());
        let line = text.lines().find(|line| line.contains("slowdown"));
        let line = line.unwrap_or_default();
        assert!(line.contains("unknown: ") && line.contains(word), "{text}");
    }
}

#[test]
fn ledgers() {
    assert_eq!(
        ledger::render(&inspection(), &plain()),
        "\
aegisd is not running: read from shared memory without it
job 7, process 4711 python
  launches   100000 kernels, 2 graphs, 30 copies, 4 memsets; last activity 1s ago
  sequence   120 launches, repeated 12.345 times a second over 3s, 1s ago
  GPU 0      6.00 GiB used, peak 7.00 GiB, limit 8.00 GiB, 6.50 GiB by NVML
             by kind: device 5.00 GiB, pool 1.00 GiB
             120 allocations, 20 frees, 3 refused by AEGIS in 1 episodes, 0 by the driver
  passed on  capture 2
  unknown    1 looked-up names
  warning: used differs from NVML
"
    );
}

#[test]
fn nothing_hostile_reaches_a_terminal() {
    let view = QueueView {
        jobs: vec![hostile()],
        pending: 1,
        running: 0,
    };
    let mut strange = gpu();
    strange.name = HOSTILE.into();
    strange.residents = vec![hostile().id];
    strange.foreign[0].command = Some(HOSTILE.into());
    let mut told = explanation(9);
    told.history = vec![HOSTILE.into()];
    told.blockers[0].text = HOSTILE.into();
    told.blockers[0].clears = HOSTILE.into();
    let mut ledgers = inspection();
    let process = &mut ledgers.processes[0];
    process.command = Some(HOSTILE.into());
    process.warning = Some(HOSTILE.into());
    process.bypasses[0].0 = HOSTILE.into();
    process.gpus[0].gpu = None;
    process.gpus[0].uuid = HOSTILE.into();
    process.gpus[0].kinds[0].kind = HOSTILE.into();
    let unstarted = done(
        9,
        Outcome::StartFailed {
            error: HOSTILE.into(),
        },
    );
    for text in [
        queue::render(&view, false, &plain()),
        job::render(&hostile(), &plain()),
        job::render(&unstarted, &plain()),
        explain::render(&told, &hostile(), &plain()),
        gpus::render(&[strange], &[hostile()], &plain()),
        ledger::render(&ledgers, &plain()),
    ] {
        assert!(text.contains("evil"), "{text}");
        assert!(!text.contains(|c| is_active(c) && c != '\n'), "{text}");
        let forged = text.lines().filter(|line| line.trim().is_empty()).count();
        assert_eq!(forged, 0, "a name must not make lines of its own: {text}");
    }
    assert_eq!(samples::ago(0), plain().now);
}
