//! A host that is the bottleneck is named, and its jobs are not said to slow each other down.

use anyhow::Result;
use e2e::{GIB, Setup, World};

#[test]
fn two_jobs_that_wait_for_their_loaders_have_the_cpu_named() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let loader = [
        "vision",
        "--startup",
        "0",
        "--loader-ms",
        "20",
        "--epochs",
        "1000",
    ];
    let first = world.submit(&["--gpu-mem", "5GiB"], &world.workload(&loader))?;
    world.steady(first)?;
    let second = world.submit(&["--gpu-mem", "5GiB"], &world.workload(&loader))?;
    world.steady(second)?;
    let named = |job| -> Result<bool> {
        let history = world.explain(job)?.history;
        Ok(history.iter().any(|line| line.contains("the host's CPUs")))
    };
    assert!(!named(first)? && !named(second)?);
    // As the kernel shows it while both jobs' loaders want more CPUs than there are.
    std::fs::create_dir(world.pressure_dir())?;
    let text = "some avg10=83.10 avg60=61.00 avg300=20.00 total=123456\n";
    std::fs::write(world.pressure_dir().join("cpu"), text)?;
    e2e::until("the CPUs are named for both", || {
        Ok((named(first)? && named(second)?).then_some(()))
    })?;
    let text = world.run(["explain", &second.to_string()])?;
    assert!(text.stdout.contains("slowdown unknown"), "{text:?}");
    // Neither is stopped for it.
    for job in [first, second] {
        assert_eq!(world.view(job)?.attempts.len(), 1);
        world.cancel(job)?;
    }
    Ok(())
}
