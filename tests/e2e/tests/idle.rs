//! GPUs that a job keeps and does not use are shown.

use anyhow::Result;
use e2e::{GIB, Setup, World};
use serde_json::Value;

#[test]
fn a_job_that_asks_for_two_gpus_and_uses_one_is_told() -> Result<()> {
    let world = World::start(Setup::gpus(2, 16 * GIB).key("jobs.idle_after", "\"1s\""))?;
    let job = world.submit(
        &["--gpus", "2"],
        &world.workload(&["hold", "1GiB", "--launch"]),
    )?;
    world.said(job, 1, "READY")?;
    let view = world.reach(job, "has an idle GPU", |view| !view.idle.is_empty())?;
    let unused: Vec<_> = view
        .holdings
        .iter()
        .filter(|holding| holding.peak == 0)
        .collect();
    assert_eq!(unused.len(), 1, "{view:?}");
    let idle: Vec<_> = view
        .idle
        .iter()
        .map(|idle| (idle.gpu, idle.dormant))
        .collect();
    assert_eq!(idle, [(unused[0].gpu, false)]);

    let gpu = unused[0].gpu;
    let list = world.run(["queue"])?.stdout;
    assert!(list.contains(&format!("GPU {gpu} idle for ")), "{list}");
    for arguments in [vec!["status", "1"], vec!["gpus"]] {
        let text = world.run(&arguments)?.stdout;
        assert!(text.contains("idle: no memory held there for "), "{text}");
    }
    let document: Value = world.json(&["gpus"])?;
    let told = document["idle"].as_array().cloned().unwrap_or_default();
    assert_eq!(told.len(), 1, "{document}");
    assert_eq!(
        (told[0]["job"].as_u64(), told[0]["gpu"].as_u64()),
        (Some(1), Some(gpu.0.into()))
    );

    let warning = "keeps a GPU on which it holds no memory";
    e2e::until("the log tells", || {
        let log = std::fs::read_to_string(world.log())?;
        Ok(log.contains(warning).then_some(()))
    })?;
    // The next looks come each second; it is told once.
    world.reach(job, "has been looked at again", |view| {
        let since = view.idle.first().map(|idle| idle.since.0);
        since.is_some_and(|since| now_ms() > since + 4_000)
    })?;
    let log = std::fs::read_to_string(world.log())?;
    assert_eq!(log.matches(warning).count(), 1);
    world.cancel(job)
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis().try_into().unwrap_or(u64::MAX))
}
