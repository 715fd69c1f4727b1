//! The Python environment with tinygrad, in `target/venv`.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Step, Verb};
use crate::command::{capture, run};
use crate::versions::TINYGRAD;
use crate::workspace::venv;

/// Python and the pinned framework.
pub(crate) fn steps() -> Vec<Step> {
    vec![Step {
        name: "tinygrad",
        required_by: &[Verb::Demo, Verb::Compat],
        used_by: &[Verb::Test],
        check: tinygrad,
        install,
        by_hand: "install python3 with its venv module (Debian: apt-get install python3-venv), then \
                  python3 -m venv target/venv && target/venv/bin/pip install tinygrad==0.14.0 \
                  (without it the tinygrad tests are skipped)",
    }]
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
