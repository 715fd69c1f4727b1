//! The journal replayed into the core gives identical actions (invariant 9).

use aegis_common::action::Action;
use aegis_common::event::Stamped;
use aegis_daemon::scheduler::Core;
use anyhow::{Context, Result};
use e2e::{GIB, Setup, World};
use rusqlite::{Connection, OpenFlags};

/// Jobs that share, run out of memory, recover, are cancelled, and outlive a crash of the daemon if
/// there is to be one.
fn live_through_a_lot(world: &mut World, crash: bool) -> Result<()> {
    let holder = world.submit(
        &["--gpu-mem", "6GiB"],
        &world.workload(&["hold", "6GiB", "--launch"]),
    )?;
    world.said(holder, 1, "READY")?;
    world.steady(holder)?;
    let growing = world.workload(&[
        "vision",
        "--startup",
        "0",
        "--epochs",
        "1",
        "--steps",
        "20",
        "--grow-at",
        "5",
        "--grow-bytes",
        "5GiB",
    ]);
    let growing = world.submit(&[], &growing)?;
    world.reach(growing, "has failed once", |view| {
        view.attempts
            .first()
            .is_some_and(|first| first.retried.is_some())
    })?;
    let dropped = world.submit(&["--exclusive"], &["true"])?;
    world.cancel(dropped)?;
    if crash {
        world.crash_and_restart()?;
    }
    let fails = world.submit(&[], &["sh", "-c", "exit 3"])?;
    assert_eq!(world.wait(fails)?, 3);
    world.cancel(holder)?;
    assert_eq!(world.wait(growing)?, 0);
    Ok(())
}

#[test]
fn a_replay_gives_identical_actions_and_arrives_at_the_same_state() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 12 * GIB))?;
    live_through_a_lot(&mut world, false)?;
    let status = world.take_daemon()?.terminate()?;
    assert!(status.success(), "{status}");
    replay(&world, true)
}

#[test]
fn a_replay_across_a_crash_gives_identical_actions() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 12 * GIB))?;
    live_through_a_lot(&mut world, true)?;
    world.take_daemon()?.kill()?;
    replay(&world, false)
}

/// Replays every epoch in the database. `orderly`: the last snapshot was written by a daemon that
/// was asked to stop, so the replay must arrive exactly there. (A daemon that takes over lets the core
/// forget what it cannot know any more before it writes one.)
fn replay(world: &World, orderly: bool) -> Result<()> {
    let path = world.state_dir().join("aegis.db");
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let snapshots = database
        .prepare("SELECT seq, json FROM snapshot ORDER BY seq")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(i64, String)>, _>>()?;
    let mut kinds = std::collections::BTreeSet::new();
    let mut steps = 0;
    for (position, (from, json)) in snapshots.iter().enumerate() {
        let to = snapshots
            .get(position + 1)
            .map_or(i64::MAX, |(seq, _)| *seq);
        let mut core: Core = serde_json::from_str(json)?;
        let mut rows = database.prepare(
            "SELECT seq, json, actions FROM journal WHERE seq > ?1 AND seq <= ?2 ORDER BY seq",
        )?;
        let mut rows = rows.query([*from, to])?;
        while let Some(row) = rows.next()? {
            let seq: i64 = row.get(0)?;
            let stamped: Stamped = serde_json::from_str(&row.get::<_, String>(1)?)?;
            let then: Vec<Action> = serde_json::from_str(&row.get::<_, String>(2)?)?;
            let now = core.step(stamped.at, &stamped.event);
            assert_eq!(now, then, "journal row {seq}: {stamped:?}");
            for action in now {
                let kind = serde_json::to_value(&action)?;
                let kind = kind["action"].as_str().context("action")?.to_owned();
                kinds.insert(kind);
                if let Action::Finish { job, .. } = action {
                    core.forget(job);
                }
            }
            steps += 1;
        }
        if let Some((_, next)) = snapshots.get(position + 1).filter(|_| orderly) {
            let arrived = serde_json::to_value(&core)?;
            let stored: serde_json::Value = serde_json::from_str(next)?;
            assert_eq!(arrived, stored, "the state after the replay");
        }
    }
    assert!(steps > 20, "only {steps} steps were replayed");
    for kind in ["start", "finish", "retry", "set_lease", "answer"] {
        assert!(kinds.contains(kind), "no `{kind}` among {kinds:?}");
    }
    Ok(())
}
