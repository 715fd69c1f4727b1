//! The processes on one GPU.

use std::collections::BTreeMap;

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

/// Which of NVML's process list calls may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListCall {
    /// The newest.
    V3,
    /// The one before, for drivers whose v3 is missing or broken.
    V2,
}

impl ListCall {
    /// Drivers 535.43 to 535.97 return v3 entries larger than every header's and would write past
    /// the list's end (nvitop issues 79, 88, 89, 94).
    pub(super) fn for_driver(version: &str) -> Self {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
        let major = parts.next().flatten();
        let minor = parts.next().flatten();
        match (major, minor) {
            (Some(535), Some(43..=97)) => Self::V2,
            _ => Self::V3,
        }
    }
}

/// All processes with compute or graphics work on `device`: pid and bytes, ascending, each once.
/// `None` if the bytes of any are not available.
///
/// # Errors
///
/// Whatever NVML reports.
pub(super) fn read(
    device: &Device<'_>,
    call: ListCall,
) -> Result<Option<Vec<(u32, u64)>>, NvmlError> {
    let compute = again_if_grown(|| match call {
        ListCall::V3 => or_older(device.running_compute_processes(), || {
            device.running_compute_processes_v2()
        }),
        ListCall::V2 => device.running_compute_processes_v2(),
    })?;
    let graphics = again_if_grown(|| match call {
        ListCall::V3 => or_older(device.running_graphics_processes(), || {
            device.running_graphics_processes_v2()
        }),
        ListCall::V2 => device.running_graphics_processes_v2(),
    });
    let graphics = match graphics {
        // Compute-only devices have no such list.
        Err(NvmlError::NotSupported) => Vec::new(),
        other => other?,
    };
    Ok(merge(&compute, &graphics))
}

fn or_older<T>(
    newest: Result<T, NvmlError>,
    older: impl FnOnce() -> Result<T, NvmlError>,
) -> Result<T, NvmlError> {
    match newest {
        Err(NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound) => older(),
        other => other,
    }
}

/// The list may outgrow its buffer between asking for its length and reading it.
fn again_if_grown<T>(list: impl Fn() -> Result<T, NvmlError>) -> Result<T, NvmlError> {
    match list() {
        Err(NvmlError::InsufficientSize(_)) => list(),
        other => other,
    }
}

/// A process may be in both lists, with the same bytes in each, and several times in one, once per
/// MIG instance.
fn merge(compute: &[ProcessInfo], graphics: &[ProcessInfo]) -> Option<Vec<(u32, u64)>> {
    let mut merged = sums(compute)?;
    for (pid, bytes) in sums(graphics)? {
        let known = merged.entry(pid).or_default();
        *known = bytes.max(*known);
    }
    Some(merged.into_iter().collect())
}

fn sums(list: &[ProcessInfo]) -> Option<BTreeMap<u32, u64>> {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for process in list {
        let UsedGpuMemory::Used(bytes) = process.used_gpu_memory else {
            return None;
        };
        let sum = sums.entry(process.pid).or_default();
        *sum = sum.saturating_add(bytes);
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, bytes: u64) -> ProcessInfo {
        ProcessInfo {
            pid,
            used_gpu_memory: UsedGpuMemory::from(bytes),
            gpu_instance_id: None,
            compute_instance_id: None,
        }
    }

    #[test]
    fn a_process_in_both_lists_counts_once() {
        let compute = [process(7, 100), process(3, 5), process(3, 6)];
        let graphics = [process(7, 100), process(9, 1)];
        let merged = merge(&compute, &graphics).unwrap();
        assert_eq!(merged, [(3, 11), (7, 100), (9, 1)]);
        assert_eq!(merge(&[], &[]), Some(vec![]));
    }

    #[test]
    fn bytes_that_are_not_available_make_the_list_unknown() {
        // NVML_VALUE_NOT_AVAILABLE is -1.
        assert_eq!(merge(&[process(1, u64::MAX)], &[]), None);
        assert_eq!(merge(&[], &[process(1, 5), process(2, u64::MAX)]), None);
    }

    #[test]
    fn drivers_with_oversized_entries_are_asked_the_old_way() {
        let of = ListCall::for_driver;
        for version in ["535.43.02", "535.54.03", "535.86.10", "535.97"] {
            assert_eq!(of(version), ListCall::V2, "{version}");
        }
        for version in [
            "525.147.05",
            "535.98",
            "535.104.05",
            "550.54.14",
            "575",
            "",
            "x.y",
        ] {
            assert_eq!(of(version), ListCall::V3, "{version}");
        }
    }
}
