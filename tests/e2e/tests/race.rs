//! Two processes race for a job's last chunk.

use std::fs::{File, OpenOptions};
use std::io::Write;

use anyhow::{Context, Result};
use e2e::{GIB, Lines, MIB, Setup, World};

const ROUNDS: usize = 1000;
const DECLARED: u64 = 2 * GIB;

struct Racer {
    orders: File,
    output: Lines,
    seen: usize,
}

impl Racer {
    fn order(&mut self, order: &str) -> Result<()> {
        writeln!(self.orders, "{order}").context("order")
    }

    /// The next line that starts with `prefix`, after the last one taken.
    fn next(&mut self, prefix: &str) -> Result<String> {
        let (seen, prefix) = (self.seen, prefix.to_owned());
        let count = std::cell::Cell::new(0);
        // Called for each line in order, once.
        self.output.wait(&prefix, |_| {
            count.set(count.get() + 1);
            count.get() > seen
        })?;
        let line = self.output.seen.get(seen).context("line")?.clone();
        self.seen += 1;
        let rest = line.strip_prefix(&prefix);
        Ok(rest
            .with_context(|| format!("{prefix}: got `{line}`"))?
            .trim()
            .to_owned())
    }
}

#[test]
fn no_overshoot_in_a_thousand_tries() -> Result<()> {
    // Must show: two processes racing for the last chunk: no overshoot in 1,000 tries.
    let world = World::start(Setup::gpus(1, 16 * GIB).key("scheduler.grow_wait", "\"0ms\""))?;
    let mut script = String::new();
    for name in ["a", "b"] {
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            world.file(&format!("{name}.in")),
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )?;
        script.push_str(&format!(
            "{} race --chunk 64MiB < {name}.in > {name}.out & ",
            world.artifacts.workload.display()
        ));
    }
    script.push_str("wait");
    let job = world.submit(&["--gpu-mem", "2GiB"], &["sh", "-c", &script])?;
    world.running(job)?;
    let mut racers = Vec::new();
    for name in ["a", "b"] {
        racers.push(Racer {
            // Waits until the racer has opened its end.
            orders: OpenOptions::new()
                .write(true)
                .open(world.file(&format!("{name}.in")))?,
            output: Lines::follow(&world.file(&format!("{name}.out")))?,
            seen: 0,
        });
    }
    for racer in &mut racers {
        racer.next("READY")?;
    }
    let mut most = 0;
    for round in 0..ROUNDS {
        for racer in &mut racers {
            racer.order("go")?;
        }
        let mut sum = 0;
        for racer in &mut racers {
            sum += racer.next("GOT")?.parse::<u64>()?;
        }
        // By the simulator, not by what the racers say.
        let processes = world.machine.processes();
        let truth: u64 = processes
            .iter()
            .flat_map(|p| &p.gpus)
            .map(|g| g.allocated_bytes)
            .sum();
        assert_eq!(truth, sum, "round {round}");
        assert!(
            sum <= DECLARED,
            "round {round}: {sum} bytes held, {DECLARED} declared"
        );
        most = most.max(sum);
        for racer in &mut racers {
            racer.order("free")?;
        }
        for racer in &mut racers {
            racer.next("READY")?;
        }
    }
    assert!(
        most >= DECLARED - 512 * MIB,
        "only {most} bytes were ever given"
    );
    Ok(())
}
