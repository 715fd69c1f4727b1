//! GPU performance monitoring.

use std::ffi::c_char;

use simgpu_core::fault::FaultKind;
use simgpu_core::usage::GpuUsage;

use crate::code::{Code, Result};
use crate::ffi::pointers::Ptr;
use crate::library::{Device, device, machine, state};

/// `nvmlGpmMetric_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Metric {
    id: u32,
    result: u32,
    value: f64,
    short_name: *const c_char,
    long_name: *const c_char,
    unit: *const c_char,
}

/// `nvmlGpmMetricsGet_t` without its array, whose length differs between header versions: only the
/// first `count` elements exist for sure.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Request {
    version: u32,
    count: u32,
    first: u64,
    second: u64,
}

/// `nvmlGpmSupport_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Support {
    version: u32,
    supported: u32,
}

/// Version of the structs.
const VERSION: u32 = 1;
/// Slots of the newest known header.
const MOST_METRICS: u32 = 333;
const FIRST_SAMPLE: u64 = 0x4750_0000;

const GRAPHICS_UTIL: u32 = 1;
const SM_UTIL: u32 = 2;
const SM_OCCUPANCY: u32 = 3;
const DRAM_BW_UTIL: u32 = 10;

fn supported(device: &Device) -> Result<()> {
    if device.config.supports_gpm {
        Ok(())
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

/// Per cent over the time between two samples.
fn value_of(id: u32, from: &GpuUsage, to: &GpuUsage) -> Option<f64> {
    let time = to.evaluated_ns.saturating_sub(from.evaluated_ns) as f64;
    let part = |from: u64, to: u64, unit: f64| to.saturating_sub(from) as f64 / unit / time * 100.0;
    match id {
        GRAPHICS_UTIL => Some(part(from.busy_ns, to.busy_ns, 1.0)),
        SM_UTIL => Some(part(from.sm_active, to.sm_active, 1000.0)),
        SM_OCCUPANCY => Some(part(from.sm_occupancy, to.sm_occupancy, 1000.0)),
        DRAM_BW_UTIL => Some(part(from.dram_active, to.dram_active, 1000.0)),
        // Tensor and floating-point pipes, PCIe and NVLink traffic are not simulated.
        _ => None,
    }
}

/// Short name, long name and unit of a metric, NUL-terminated.
fn names_of(id: u32) -> [&'static str; 3] {
    match id {
        GRAPHICS_UTIL => ["GRACT\0", "Graphics and compute engine active\0", "%\0"],
        SM_UTIL => ["SMACT\0", "SM active\0", "%\0"],
        SM_OCCUPANCY => ["SMOCC\0", "SM occupancy\0", "%\0"],
        DRAM_BW_UTIL => ["DRAMA\0", "DRAM active\0", "%\0"],
        _ => ["?\0", "Unknown\0", "\0"],
    }
}

fn fill(device: &Device, metric: Ptr<Metric>, from: &GpuUsage, to: &GpuUsage) -> Result<()> {
    let id = metric.get()?.id;
    let outcome = device
        .fault(FaultKind::GpmMetric)
        .and(value_of(id, from, to).ok_or(Code::NOT_SUPPORTED));
    let (result, mut value) = match outcome {
        Ok(value) => (0, value),
        Err(code) => (code.0, 0.0),
    };
    if device.fault(FaultKind::GpmNan).is_err() {
        value = f64::NAN;
    } else if device.fault(FaultKind::GpmStale).is_err() {
        value = state()
            .stale
            .get(&(device.gpu, id))
            .copied()
            .unwrap_or(value);
    }
    state().stale.insert((device.gpu, id), value);
    let [short_name, long_name, unit] = names_of(id).map(|name| name.as_ptr().cast());
    metric.set(Metric {
        id,
        result,
        value,
        short_name,
        long_name,
        unit,
    })
}

export! {
    fn nvmlGpmQueryDeviceSupport(of: u64, support: Ptr<Support>) {
        let device = device(of)?;
        let version = support.get()?.version;
        if version != VERSION {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        support.set(Support { version, supported: u32::from(device.config.supports_gpm) })
    }

    fn nvmlGpmSampleAlloc(sample: Ptr<u64>) {
        machine()?;
        let mut state = state();
        let handle = state.samples.last_key_value().map_or(FIRST_SAMPLE, |(last, _)| last + 16);
        sample.set(handle)?;
        state.samples.insert(handle, None);
        Ok(())
    }

    fn nvmlGpmSampleFree(sample: u64) {
        state().samples.remove(&sample).map(drop).ok_or(Code::INVALID_ARGUMENT)
    }

    fn nvmlGpmSampleGet(of: u64, sample: u64) {
        let device = device(of)?;
        supported(&device)?;
        let usage = device.usage()?;
        let mut state = state();
        *state.samples.get_mut(&sample).ok_or(Code::INVALID_ARGUMENT)? = Some((device.gpu, usage));
        Ok(())
    }

    fn nvmlGpmMigSampleGet(of: u64, _instance: u32, _sample: u64) {
        device(of)?;
        Err(Code::NOT_SUPPORTED)
    }

    fn nvmlGpmMetricsGet(request: Ptr<Request>) {
        machine()?;
        let given = request.get()?;
        if given.version != VERSION {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let sample = |handle| state().samples.get(&handle).copied().flatten().ok_or(Code::INVALID_ARGUMENT);
        let ((gpu, from), (other, to)) = (sample(given.first)?, sample(given.second)?);
        if gpu != other || given.count > MOST_METRICS || to.evaluated_ns <= from.evaluated_ns {
            return Err(Code::INVALID_ARGUMENT);
        }
        let device = device(crate::library::handle(gpu))?;
        let metrics = request.field::<Metric>(size_of::<Request>());
        (0..given.count as usize).try_for_each(|index| fill(&device, metrics.at(index), &from, &to))
    }

    fn nvmlGpmQueryIfStreamingEnabled(of: u64, enabled: Ptr<u32>) {
        supported(&device(of)?)?;
        enabled.set(0)
    }

    fn nvmlGpmSetStreamingEnabled(of: u64, _enabled: u32) {
        supported(&device(of)?)
    }
}
