//! What `aegis doctor` can see without the daemon.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use aegis_common::wire::{Check, CheckState};

use crate::config::{Config, paths};

/// The driver's user library.
const LIBCUDA: &str = "libcuda.so.1";
/// Where distributions and containers put it.
const LIBRARY_DIRS: [&str; 7] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
];
/// The linker's cache is some hundred kilobytes; more is not read.
const MAX_CACHE: u64 = 16 << 20;

fn check(name: &str, state: CheckState, detail: impl Into<String>, hint: Option<&str>) -> Check {
    Check {
        name: name.to_owned(),
        state,
        detail: detail.into(),
        hint: hint.map(str::to_owned),
    }
}

/// All that says something: which configuration and shim are in force, a daemon that answers knows
/// better (it may have been started with others).
pub(super) fn all(daemon_answers: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    if !daemon_answers {
        let (config, library) = configuration(paths::current_uid() != 0);
        checks.push(config);
        checks.push(shim(library.or_else(paths::find_shim).as_deref()));
    }
    checks.extend([libcuda(), kernel_driver()]);
    checks
}

fn configuration(rootless: bool) -> (Check, Option<PathBuf>) {
    const NAME: &str = "configuration";
    match Config::find(None, rootless) {
        Ok((config, Some(path))) => (
            check(NAME, CheckState::Ok, path.display().to_string(), None),
            config.shim.library,
        ),
        Ok((config, None)) => (
            check(NAME, CheckState::Ok, "no file: defaults", None),
            config.shim.library,
        ),
        Err(error) => {
            let hint = "correct it; aegisd --check-config checks it without starting";
            (
                check(NAME, CheckState::Failed, error.to_string(), Some(hint)),
                None,
            )
        }
    }
}

fn shim(library: Option<&Path>) -> Check {
    const NAME: &str = "shim library";
    const HINT: &str =
        "install libaegis_shim.so beside aegisd or in /usr/lib/aegis, or set shim.library";
    let Some(path) = library else {
        let looked: Vec<String> = paths::shim_candidates()
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let detail = format!("not found in {}", looked.join(", "));
        return check(NAME, CheckState::Failed, detail, Some(HINT));
    };
    let shown = path.display();
    match File::open(path).and_then(|file| read_start(file, 20)) {
        Err(error) => check(
            NAME,
            CheckState::Failed,
            format!("{shown}: {error}"),
            Some(HINT),
        ),
        Ok(start) => match not_loadable(&start) {
            Some(why) => check(
                NAME,
                CheckState::Failed,
                format!("{shown} {why}"),
                Some(HINT),
            ),
            None if !paths::can_preload(path) => check(
                NAME,
                CheckState::Failed,
                format!(
                    "{shown} has a space or a colon in its path, which LD_PRELOAD cannot express"
                ),
                Some("move it"),
            ),
            None => check(NAME, CheckState::Ok, shown.to_string(), None),
        },
    }
}

fn read_start(file: File, bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.take(bytes).read_to_end(&mut start)?;
    Ok(start)
}

/// Why the dynamic linker would refuse a file that starts so (elf(5)).
fn not_loadable(start: &[u8]) -> Option<&'static str> {
    const EM_X86_64: u8 = 62;
    const EM_AARCH64: u8 = 183;
    let machine = if cfg!(target_arch = "aarch64") {
        EM_AARCH64
    } else {
        EM_X86_64
    };
    match start {
        [0x7f, b'E', b'L', b'F', class, data, rest @ ..] => match (class, data, rest) {
            (2, 1, [_, _, _, _, _, _, _, _, _, _, 3, 0, found, 0, ..]) if *found == machine => None,
            (2, 1, [_, _, _, _, _, _, _, _, _, _, 3, 0, ..]) => {
                Some("is a library for another kind of processor")
            }
            _ => Some("is not a 64-bit shared library"),
        },
        _ => Some("is not an ELF file"),
    }
}

fn libcuda() -> Check {
    const NAME: &str = "CUDA driver library";
    match find_libcuda() {
        Some(place) => check(NAME, CheckState::Ok, format!("{LIBCUDA} in {place}"), None),
        None => check(
            NAME,
            CheckState::Degraded,
            format!("{LIBCUDA} is neither in LD_LIBRARY_PATH nor known to the dynamic linker"),
            Some("install the NVIDIA driver; in a container start it with the NVIDIA runtime"),
        ),
    }
}

fn find_libcuda() -> Option<String> {
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let listed = std::env::split_paths(&own).filter(|dir| dir.is_absolute());
    let usual = LIBRARY_DIRS.iter().map(PathBuf::from);
    if let Some(dir) = listed.chain(usual).find(|dir| dir.join(LIBCUDA).is_file()) {
        return Some(dir.display().to_string());
    }
    let cache = File::open("/etc/ld.so.cache")
        .and_then(|file| read_start(file, MAX_CACHE))
        .ok()?;
    let needle = format!("{LIBCUDA}\0");
    cache
        .windows(needle.len())
        .any(|window| window == needle.as_bytes())
        .then(|| "the dynamic linker's cache".to_owned())
}

fn kernel_driver() -> Check {
    const NAME: &str = "NVIDIA kernel driver";
    let mut version = String::new();
    match File::open("/proc/driver/nvidia/version")
        .and_then(|file| file.take(4096).read_to_string(&mut version))
    {
        Ok(_) => check(
            NAME,
            CheckState::Ok,
            version.lines().next().unwrap_or("loaded"),
            None,
        ),
        Err(_) => check(
            NAME,
            CheckState::Degraded,
            "not loaded: any libcuda here is a simulation, on which NVIDIA's CUDA runtime fails with error 103",
            Some(
                "error 103 (software validity not established) is the runtime's own check of the driver, not the shim's doing; load the NVIDIA driver",
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_64_bit_library_of_this_processor_is_loadable() {
        let exe = std::env::current_exe().unwrap();
        let mut start = read_start(File::open(exe).unwrap(), 20).unwrap();
        // A position-independent executable has a library's type.
        assert_eq!(not_loadable(&start), None);
        start[18] = 8;
        assert!(not_loadable(&start).unwrap().contains("processor"));
        start[16] = 2;
        assert!(not_loadable(&start).unwrap().contains("shared library"));
        assert!(not_loadable(b"#!/bin/sh").is_some() && not_loadable(b"").is_some());
        assert!(not_loadable(&start[..10]).is_some());
    }

    #[test]
    fn a_missing_or_wrong_shim_is_a_failure_with_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("libaegis_shim.so");
        assert_eq!(shim(None).state, CheckState::Failed);
        assert_eq!(shim(Some(&path)).state, CheckState::Failed);
        std::fs::write(&path, "text").unwrap();
        let found = shim(Some(&path));
        assert_eq!(found.state, CheckState::Failed);
        assert!(found.detail.contains("not an ELF file") && found.hint.is_some());
    }
}
