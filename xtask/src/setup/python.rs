//! The Python environment with tinygrad, in `target/venv`.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Step, Verb};
use crate::command::{capture, run};
use crate::versions::TINYGRAD;
use crate::workspace::{root, venv};

/// Python and the pinned framework.
pub(crate) fn steps() -> Vec<Step> {
    vec![
        Step {
            name: "tinygrad",
            required_by: &[Verb::Demo, Verb::Compat],
            used_by: &[Verb::Test],
            check: tinygrad,
            install,
            by_hand: "install python3 with its venv module (Debian: apt-get install python3-venv), then \
                  python3 -m venv target/venv && target/venv/bin/pip install tinygrad==0.14.0 \
                  (without it the tinygrad tests are skipped)",
        },
        Step {
            name: "client software",
            required_by: &[],
            used_by: &[Verb::Test],
            check: clients,
            install: || install_requirements(CLIENTS),
            by_hand: "target/venv/bin/python -m pip install -r tests/compat/clients/requirements.txt \
                  (without it the tests of these clients are skipped)",
        },
    ]
}

/// Pinned packages that install in seconds, for the light set of `cargo xtask compat`.
pub(crate) const CLIENTS: &str = "tests/compat/clients/requirements.txt";

/// Installs the packages of a requirements file that are missing or of another version.
///
/// # Errors
/// There is no Python environment, or a package cannot be had.
pub(crate) fn install_requirements(file: &str) -> Result<()> {
    // Not `bin/pip`: its first line names the directory in which the environment was made.
    run(Command::new(venv().join("bin/python"))
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
        ])
        .arg(root().join(file)))
    .context("is PyPI reachable?")
}

/// The versions that the requirements file pins, all installed.
fn clients() -> Result<String> {
    let python = venv().join("bin/python");
    if !python.exists() {
        bail!("{} does not exist", python.display());
    }
    let pinned = std::fs::read_to_string(root().join(CLIENTS)).context(CLIENTS)?;
    let pinned = pinned.lines().filter(|line| line.contains("=="));
    let query = "import importlib.metadata as m, sys\n\
                 for pin in sys.argv[1:]:\n    \
                 name, version = pin.split('==')\n    \
                 assert m.version(name) == version, f'{name} {m.version(name)} is installed, {version} is wanted'";
    capture(
        Command::new(&python)
            .args(["-c", query])
            .args(pinned.clone()),
    )?;
    Ok(pinned.collect::<Vec<_>>().join(", "))
}

fn tinygrad() -> Result<String> {
    let python = venv().join("bin/python");
    if !python.exists() {
        bail!("{} does not exist", python.display());
    }
    let query = "import importlib.metadata as m; print(m.version('tinygrad'))";
    let version = capture(Command::new(&python).args(["-c", query]))?;
    if version.trim() != TINYGRAD {
        bail!("{} is installed, {TINYGRAD} is wanted", version.trim());
    }
    Ok(version.trim().to_owned())
}

fn install() -> Result<()> {
    let venv = venv();
    if !venv.join("bin/pip").exists() {
        run(Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&venv))
        .context("is python3 with its venv module installed?")?;
    }
    run(Command::new(venv.join("bin/pip")).args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        &format!("tinygrad=={TINYGRAD}"),
    ]))
    .context("is PyPI reachable?")
}
