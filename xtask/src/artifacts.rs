//! Building what tests and the demo run, and where it lies.

pub(crate) mod runtime;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::command::{cargo, run};
use crate::workspace::{root, shim, shim_target, target};

/// Build profile of the artifacts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Profile {
    /// With crash points and assertions.
    Debug,
    /// As installed.
    Release,
}

impl Profile {
    /// Cargo's name for the output directory.
    pub(crate) const fn directory(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Release => "release",
        }
    }

    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Debug => &[],
            Self::Release => &["--release"],
        }
    }
}

/// Builds the shim alone; returns its path.
///
/// # Errors
/// The build failed.
pub(crate) fn build_shim(profile: Profile) -> Result<PathBuf> {
    run(cargo()
        .current_dir(shim())
        .args(["build", "--quiet", "--locked", "--target-dir"])
        .arg(shim_target())
        .args(profile.arguments()))?;
    let path = shim_target()
        .join(profile.directory())
        .join("libaegis_shim.so");
    if !path.exists() {
        bail!("the build left no {}", path.display());
    }
    Ok(path)
}

/// Builds everything that ships.
///
/// # Errors
/// The build failed.
pub(crate) fn build_product(profile: Profile) -> Result<(PathBuf, PathBuf, PathBuf)> {
    let shim = build_shim(profile)?;
    run(cargo()
        .current_dir(root())
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "aegis-daemon",
            "--bins",
        ])
        .args(profile.arguments()))?;
    let bin = target().join(profile.directory());
    Ok((bin.join("aegis"), bin.join("aegisd"), shim))
}

/// Builds the product, the simulated driver and the workloads.
///
/// # Errors
/// The build failed.
pub(crate) fn build_all(profile: Profile) -> Result<()> {
    build_product(profile)?;
    run(cargo()
        .current_dir(root())
        .args(["build", "--quiet", "--locked"])
        .args(["--package", "simgpu-cuda", "--package", "simgpu-nvml"])
        .args(["--package", "workloads"])
        .args(profile.arguments()))
}
