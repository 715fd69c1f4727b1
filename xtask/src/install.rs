//! `cargo xtask install`: optimised binaries, the shim and the systemd unit below a prefix.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::artifacts::{self, Profile};
use crate::setup;

/// The unit file, with `{prefix}` to be filled in.
const UNIT: &str = include_str!("install/aegisd.service");

/// Options of `install`.
#[derive(Args)]
pub(crate) struct Options {
    /// Where `bin/aegis`, `bin/aegisd` and `lib/aegis/libaegis_shim.so` go
    #[arg(long, default_value = "/usr/local")]
    prefix: PathBuf,
    /// Where the systemd unit goes
    #[arg(long, default_value = "/etc/systemd/system")]
    unit_dir: PathBuf,
}

/// `cargo xtask install`.
///
/// # Errors
/// The build or a copy failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    setup::prepare(setup::Verb::Install, false)?;
    println!("install: building");
    let (aegis, aegisd, shim) = artifacts::build_product(Profile::Release)?;
    let bin = options.prefix.join("bin");
    place(&aegis, &bin.join("aegis"), 0o755)?;
    place(&aegisd, &bin.join("aegisd"), 0o755)?;
    place(
        &shim,
        &options.prefix.join("lib/aegis/libaegis_shim.so"),
        0o755,
    )?;
    let unit = options.unit_dir.join("aegisd.service");
    let fresh = unit.with_extension("service.new");
    create_parent(&unit)?;
    fs::write(&fresh, unit_text(&options.prefix))
        .with_context(|| format!("cannot write {}", fresh.display()))?;
    rename(&fresh, &unit)?;
    println!(
        "install: done. Next: systemctl daemon-reload && systemctl enable --now aegisd && aegis doctor"
    );
    Ok(())
}

fn unit_text(prefix: &Path) -> String {
    UNIT.replace("{prefix}", &prefix.display().to_string())
}

/// Copies beside the target and renames: a running program keeps the old file.
fn place(from: &Path, to: &Path, mode: u32) -> Result<()> {
    create_parent(to)?;
    let mut fresh = to.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    fs::copy(from, &fresh)
        .with_context(|| format!("cannot copy {} to {}", from.display(), fresh.display()))?;
    fs::set_permissions(&fresh, Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", fresh.display()))?;
    rename(&fresh, to)
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).with_context(|| format!("cannot create {}", to.display()))?;
    println!("install: {}", to.display());
    Ok(())
}

fn create_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) => fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_lets_jobs_outlive_the_daemon() {
        let unit = unit_text(Path::new("/opt/aegis"));
        assert!(unit.contains("ExecStart=/opt/aegis/bin/aegisd"));
        assert!(unit.contains("\nKillMode=process\n"));
        assert!(!unit.contains('{'));
    }

    #[test]
    fn an_installed_file_replaces_the_old_one_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("new"), dir.path().join("deep/bin/aegis"));
        fs::write(&from, "new").unwrap();
        place(&from, &to, 0o755).unwrap();
        fs::write(&from, "newer").unwrap();
        place(&from, &to, 0o755).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "newer");
        assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(to.parent().unwrap()).unwrap().count(), 1);
    }
}
