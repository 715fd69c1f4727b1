//! What `aegis doctor` says about telemetry.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use aegis_common::policy::Tier;
use aegis_common::wire::{Check, CheckState};
use nvml_wrapper::Nvml;

use super::device;
use super::found::{Count, Indices, count};
use super::processes::{self, ListCall};
use super::thread::open;

/// Inode of the initial PID namespace (`PROC_PID_INIT_INO` in the kernel).
const INITIAL_PID_NAMESPACE: u64 = 0xefff_fffc;

/// Looks at everything telemetry needs. Blocks for some milliseconds per GPU: not for the runtime's
/// threads.
#[must_use]
pub fn checks(nvml_library: Option<&Path>) -> Vec<Check> {
    let nvml = match open(nvml_library) {
        Ok(nvml) => nvml,
        Err(error) => {
            return vec![check(
                "NVML",
                CheckState::Failed,
                error.to_string(),
                Some("install the NVIDIA driver, or set the path of libnvidia-ml.so.1"),
            )];
        }
    };
    let driver = nvml.sys_driver_version();
    let mut checks = vec![match &driver {
        Ok(version) => check("NVML", CheckState::Ok, format!("driver {version}"), None),
        Err(error) => check(
            "NVML",
            CheckState::Degraded,
            format!("the driver does not tell its version: {error}"),
            None,
        ),
    }];
    let call = ListCall::for_driver(&driver.unwrap_or_default());
    match count(&nvml, &mut Indices::default()) {
        Ok(counted) => gpu_checks(&counted, call, &mut checks),
        Err(error) => checks.push(check(
            "GPUs",
            CheckState::Failed,
            format!("they cannot be counted: {error}"),
            Some("look for the driver's messages in the kernel log"),
        )),
    }
    close(nvml, &mut checks);
    checks
}

fn gpu_checks(counted: &Count<'_>, call: ListCall, checks: &mut Vec<Check>) {
    checks.push(gpus(counted));
    let mut pids = Vec::new();
    for (device, found) in &counted.gpus {
        checks.push(tier(found.index.0, &found.name, found.tier));
        let name = format!("GPU {} processes", found.index);
        checks.push(match processes::read(device, call) {
            Ok(Some(list)) => {
                pids.extend(list.iter().map(|(pid, _)| *pid));
                let count = list.len();
                check(&name, CheckState::Ok, format!("{count} visible"), None)
            }
            Ok(None) => check(
                &name,
                CheckState::Failed,
                "their memory is not available, so this GPU is not shared".to_owned(),
                Some("some virtual GPUs and WSL hide it; use --exclusive jobs there"),
            ),
            Err(error) => check(
                &name,
                CheckState::Failed,
                format!("not listed ({error}), so this GPU is not shared"),
                None,
            ),
        });
        if device::used(device).ok().flatten().is_none() {
            checks.push(check(
                &format!("GPU {} memory", found.index),
                CheckState::Failed,
                "the memory in use is not told".to_owned(),
                Some("drivers before 510 lack this call: update the driver"),
            ));
        }
    }
    let initial = fs::metadata("/proc/self/ns/pid")
        .is_ok_and(|namespace| namespace.ino() == INITIAL_PID_NAMESPACE);
    let unmatched = pids.iter().filter(|pid| !exists(**pid)).count();
    checks.push(pid_check(pids.len(), unmatched, initial));
}

fn gpus(counted: &Count<'_>) -> Check {
    let present = counted.gpus.len();
    match (present, counted.missing) {
        (0, 0) => check(
            "GPUs",
            CheckState::Failed,
            "none".to_owned(),
            Some("the driver is installed but sees no device"),
        ),
        (_, 0) => check("GPUs", CheckState::Ok, format!("{present} present"), None),
        (_, missing) => check(
            "GPUs",
            CheckState::Degraded,
            format!("{present} present, {missing} unusable"),
            Some("look for Xid messages in the kernel log; a reset or reboot may be needed"),
        ),
    }
}

fn tier(index: u32, product: &str, tier: Tier) -> Check {
    let name = format!("GPU {index} telemetry");
    match tier {
        Tier::Gpm | Tier::Dcgm => check(
            &name,
            CheckState::Ok,
            format!("{product}: GPM counters (SM activity, occupancy, DRAM)"),
            None,
        ),
        Tier::Utilisation => check(
            &name,
            CheckState::Degraded,
            format!("{product}: NVML utilisation only, a coarser gate for sharing"),
            Some("GPM counters need Hopper or newer; DCGM is not used by this version"),
        ),
        Tier::None => check(
            &name,
            CheckState::Degraded,
            format!("{product}: no activity figures, so jobs run there one at a time"),
            Some("MIG mode and some virtual GPUs have none"),
        ),
    }
}

fn pid_check(visible: usize, unmatched: usize, initial: bool) -> Check {
    const NAME: &str = "GPU process ids";
    match (visible, unmatched, initial) {
        (_, 1.., _) => check(
            NAME,
            CheckState::Failed,
            format!("{unmatched} of {visible} have no process here: they count as strangers"),
            Some("run aegisd in the host's PID namespace (containers: --pid=host)"),
        ),
        (1.., 0, _) => check(
            NAME,
            CheckState::Ok,
            format!("all {visible} match processes here"),
            None,
        ),
        (0, 0, true) => check(
            NAME,
            CheckState::Ok,
            "no process to match; this is the initial PID namespace".to_owned(),
            None,
        ),
        (0, 0, false) => check(
            NAME,
            CheckState::Degraded,
            "no process to match, and this is not the initial PID namespace".to_owned(),
            Some("run `aegis doctor` again while a job uses a GPU"),
        ),
    }
}

/// The driver says 0 for processes it cannot name in this namespace.
fn exists(pid: u32) -> bool {
    pid != 0 && fs::exists(format!("/proc/{pid}")).unwrap_or(false)
}

fn close(nvml: Nvml, checks: &mut Vec<Check>) {
    if let Err(error) = nvml.shutdown() {
        checks.push(check(
            "NVML shutdown",
            CheckState::Degraded,
            error.to_string(),
            None,
        ));
    }
}

fn check(name: &str, state: CheckState, detail: String, hint: Option<&str>) -> Check {
    Check {
        name: name.to_owned(),
        state,
        detail,
        hint: hint.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_there_is_one_clear_failure() {
        let checks = checks(Some(Path::new("/nowhere/libnvidia-ml.so.1")));
        let [only] = &checks[..] else {
            panic!("{checks:?}")
        };
        assert_eq!(only.state, CheckState::Failed);
        assert!(only.detail.contains("/nowhere"), "{}", only.detail);
        assert!(only.hint.is_some());
    }

    #[test]
    fn pids_of_another_namespace_are_a_failure() {
        assert_eq!(pid_check(3, 1, true).state, CheckState::Failed);
        assert_eq!(pid_check(3, 0, false).state, CheckState::Ok);
        assert_eq!(pid_check(0, 0, true).state, CheckState::Ok);
        assert_eq!(pid_check(0, 0, false).state, CheckState::Degraded);
        assert!(exists(std::process::id()));
        assert!(!exists(0));
    }
}
