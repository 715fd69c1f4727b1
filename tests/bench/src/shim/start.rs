//! What the library adds to a program's start: from fork to exit of a client that finds the
//! driver's functions, initialises it, makes a context and launches once.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

use aegis_shim_tests::daemon::FakeDaemon;
use anyhow::{Context, Result, bail, ensure};
use simgpu_core::{Machine, MachineConfig};
use tempfile::TempDir;

use super::client::{self, Clients, Preload, Way};
use crate::host::now_ns;
use crate::report::Figure;
use crate::stats::{Stats, ms};

/// Runs of each kind, taken in turns.
const RUNS: usize = 25;

/// Measures.
///
/// # Errors
/// A client failed, or did not register with the daemon.
pub(super) fn measure(clients: &Clients) -> Result<Vec<Figure>> {
    let directory = TempDir::with_prefix("aegis-bench-")?;
    let driver = directory.path().join("driver");
    let machine = Machine::create(
        &driver,
        &MachineConfig {
            zero_duration: true,
            ..MachineConfig::default()
        },
    )?;
    let artifacts = &clients.artifacts;
    machine.install_libraries(&artifacts.cuda, &artifacts.nvml)?;
    let names = directory.path().join("names");
    let count = write_names(&artifacts.cuda, &names)?;
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for (wall, cpu, meaning, way) in [
        (
            "startup_gpa12_ms",
            "startup_gpa12_cpu_ms",
            format!("{count} names by cuGetProcAddress_v2"),
            Way::Gpa12,
        ),
        (
            "startup_dlsym_ms",
            "startup_dlsym_cpu_ms",
            format!("{count} names by dlsym"),
            Way::Dlsym,
        ),
        (
            "startup_direct_ms",
            "startup_direct_cpu_ms",
            "linked to the driver".to_owned(),
            Way::Direct,
        ),
    ] {
        let once = |preload| start(clients, way, preload, &driver, &names);
        let [own, other] = compare(clients, once)?;
        let figure = |name, meaning, at: fn(&Took) -> f64| {
            let stats = |took: &[Took]| Stats::of(took.iter().map(at).collect());
            let own = stats(&own).context("nothing was measured")?;
            anyhow::Ok(Figure::new(name, meaning, None, own).beside(stats(&other)))
        };
        let in_cpu_time = format!("CPU time of the program alone, {meaning}");
        walls.push(figure(wall, meaning, |took| took.wall_ms)?);
        cpus.push(figure(cpu, in_cpu_time, |took| took.cpu_ms)?);
    }
    let [own, other] = compare(clients, |preload| {
        let daemon = FakeDaemon::start();
        let mut command = Command::new("/bin/true");
        clients.environment(&mut command, preload, &driver, &daemon);
        Ok(timed(&mut command)?.0)
    })?;
    let spawned = Figure::new(
        "spawn_ms",
        "/bin/true, which never calls the driver",
        None,
        Stats::of(own).context("nothing was measured")?,
    );
    let spawned = spawned.beside(Stats::of(other));
    let summary = Figure::worst(
        "startup_overhead_ms",
        "time added from fork to exit of a program that launches once: the worst of the next three",
        0.3,
        &walls,
    );
    let summary = summary.context("no way")?.limited(3.0);
    Ok([vec![summary], walls, cpus, vec![spawned]].concat())
}

/// What one program took.
struct Took {
    /// From fork to exit.
    wall_ms: f64,
    cpu_ms: f64,
}

/// Runs the client once, and looks whether the daemon saw it.
fn start(
    clients: &Clients,
    way: Way,
    preload: Preload,
    driver: &Path,
    names: &Path,
) -> Result<Took> {
    let daemon = FakeDaemon::start();
    let mut command = clients.command(way, preload, driver, &daemon);
    command.arg("start").arg(names);
    let (wall_ms, text) = timed(&mut command)?;
    let registered = daemon.registered();
    ensure!(
        registered == usize::from(preload == Preload::Shim),
        "{way:?} under {preload:?}: {registered} processes registered"
    );
    if preload == Preload::Shim {
        let ledger = daemon.ledger(0);
        let lines = ledger.launch_lines();
        let counted: u64 = lines.map(|line| line.host_functions.load(SeqCst)).sum();
        ensure!(counted == 1, "{counted} launches in the ledger");
    }
    let (_, cpu_ns) = client::parse(&text).context("the client told nothing")?;
    Ok(Took {
        wall_ms,
        cpu_ms: ms(cpu_ns.into()),
    })
}

/// The differences to bare runs, of the shim and of the other library.
fn compare<T: Difference>(
    clients: &Clients,
    once: impl Fn(Preload) -> Result<T>,
) -> Result<[Vec<T>; 2]> {
    // The first one warms caches.
    once(Preload::Nothing)?;
    let mut added = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        let bare = once(Preload::Nothing)?;
        for (preload, added) in clients.preloads().into_iter().zip(&mut added) {
            added.push(once(preload)?.less(&bare));
        }
    }
    Ok(added)
}

trait Difference {
    fn less(self, other: &Self) -> Self;
}

impl Difference for f64 {
    fn less(self, other: &Self) -> Self {
        self - other
    }
}

impl Difference for Took {
    fn less(self, other: &Self) -> Self {
        Self {
            wall_ms: self.wall_ms - other.wall_ms,
            cpu_ms: self.cpu_ms - other.cpu_ms,
        }
    }
}

/// Runs a program; from fork to its end, milliseconds, and what it printed.
fn timed(command: &mut Command) -> Result<(f64, String)> {
    let from = now_ns();
    let output = command.output()?;
    let took = ms(now_ns() - from);
    if !output.status.success() {
        bail!(
            "{command:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok((took, String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Writes what the client looks up, `symbol base flags` a line: every function of the driver, and
/// those for per-thread default streams by the flag that asks for them.
fn write_names(driver: &Path, names: &Path) -> Result<usize> {
    let output = Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=just-symbols"])
        .arg(driver)
        .output()
        .context("nm, which comes with the linker")?;
    let symbols = String::from_utf8(output.stdout)?;
    let mut lines: Vec<String> = symbols
        .lines()
        .filter(|symbol| symbol.starts_with("cu"))
        // Looked up by their own names only.
        .filter(|symbol| !symbol.starts_with("cuGetProcAddress"))
        .map(|symbol| {
            let (rest, flags) = match symbol.strip_suffix("_ptsz") {
                Some(rest) => (rest, 2),
                None => symbol
                    .strip_suffix("_ptds")
                    .map_or((symbol, 0), |rest| (rest, 2)),
            };
            let base = match rest.rsplit_once("_v") {
                Some((base, version)) if version.parse::<u32>().is_ok() => base,
                _ => rest,
            };
            format!("{symbol} {base} {flags}\n")
        })
        .collect();
    ensure!(
        lines.len() > 300,
        "{} exports {} functions",
        driver.display(),
        lines.len()
    );
    lines.sort();
    std::fs::write(names, lines.concat())?;
    Ok(lines.len())
}
