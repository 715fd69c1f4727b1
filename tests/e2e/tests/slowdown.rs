//! Progress by launch fingerprint: what a job alone never shows, and what a victim does.

use aegis_common::id::JobId;
use aegis_common::job::{JobState, Slowdown};
use aegis_common::wire::{Inspection, JobView, PaceView};
use anyhow::Result;
use e2e::{GIB, Setup, World};

/// Five-per-cent noise is no slowdown, in thousandths.
const AS_ALONE: u32 = 1050;

fn pace(world: &World, job: JobId) -> Result<Option<PaceView>> {
    let inspection: Inspection = world.inspect(job)?;
    Ok(inspection.processes.iter().find_map(|process| process.pace))
}

fn measured(view: &JobView) -> Option<u32> {
    match view.slowdown? {
        Slowdown::Measured { permille } => Some(permille),
        Slowdown::Unknown { .. } => None,
    }
}

#[test]
fn a_lone_job_that_changes_what_it_launches_is_never_slow() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&[], &world.workload(&["phases"]))?;
    let mut fingerprints = Vec::new();
    let mut known = 0;
    let last = e2e::until("its end", || {
        let view = world.view(job)?;
        if let Some(permille) = measured(&view) {
            assert!(permille <= AS_ALONE, "{view:?}");
            known += 1;
        }
        if let Some(pace) = pace(&world, job)?
            && !fingerprints.contains(&pace.fingerprint)
        {
            fingerprints.push(pace.fingerprint);
        }
        Ok(matches!(view.state, JobState::Done { .. }).then_some(view))
    })?;
    assert!(known > 0, "its slowdown was known at times");
    // Eager, graph, evaluation, double batch; a crowded machine may be too slow for one.
    assert!(fingerprints.len() >= 3, "{fingerprints:?}");
    assert_eq!(last.attempts.len(), 1);
    assert_eq!(
        (last.evictions, last.attempts[0].stopped.is_none()),
        (0, true)
    );
    Ok(())
}

#[test]
fn a_victim_is_measured_against_itself_alone() -> Result<()> {
    let world = World::start(Setup::gpus(1, 24 * GIB))?;
    let light = world.workload(&["spin", "--gpu-bytes", "1GiB"]);
    let victim = world.submit(&["--gpu-mem", "2GiB"], &light)?;
    let alone = e2e::until("the victim's pace alone", || pace(&world, victim))?;
    assert!(alone.period >= 1 && alone.rate_uhz > 0, "{alone:?}");
    e2e::until("as fast as alone", || {
        Ok(measured(&world.view(victim)?).filter(|permille| *permille <= AS_ALONE))
    })?;
    // The simulated driver slows by the neighbour's share of the memory: 1.41 here.
    let large = world.workload(&["spin", "--gpu-bytes", "18GiB"]);
    let neighbour = world.submit(&["--gpu-mem", "19GiB"], &large)?;
    world.steady(neighbour)?;
    e2e::until("the victim's slowdown", || {
        Ok(measured(&world.view(victim)?).filter(|permille| *permille > 1200))
    })?;
    Ok(())
}
