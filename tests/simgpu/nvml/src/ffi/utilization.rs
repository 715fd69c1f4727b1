//! Utilisation of a device and of its processes.

use simgpu_core::fault::FaultKind;

use crate::code::Code;
use crate::ffi::pointers::Ptr;
use crate::library::{device, state};

/// `nvmlUtilization_t`, per cent.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Rates {
    gpu: u32,
    memory: u32,
}

/// `nvmlProcessUtilizationSample_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessSample {
    pid: u32,
    time_us: u64,
    sm: u32,
    memory: u32,
    encoder: u32,
    decoder: u32,
}

/// Period over which rates are averaged, µs.
const PERIOD_US: u32 = 166_000;

export! {
    fn nvmlDeviceGetUtilizationRates(of: u64, rates: Ptr<Rates>) {
        let device = device(of)?;
        device.fault(FaultKind::NvmlUtilization)?;
        let (busy, dram) = device.machine.recent_utilization(device.gpu);
        rates.set(Rates { gpu: (busy * 100.0).round() as u32, memory: (dram * 100.0).round() as u32 })
    }

    fn nvmlDeviceGetProcessUtilization(of: u64, samples: Ptr<ProcessSample>, count: Ptr<u32>, last_seen_us: u64) {
        let device = device(of)?;
        device.fault(FaultKind::NvmlUtilization)?;
        if !device.config.supports_process_utilization {
            return Err(Code::NOT_SUPPORTED);
        }
        let room = count.get()? as usize;
        let found = state().baselines.since(&device, last_seen_us)?;
        count.set(found.len() as u32)?;
        if found.is_empty() {
            return Err(Code::NOT_FOUND);
        }
        if samples.is_null() || room < found.len() {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        for (index, u) in found.into_iter().enumerate() {
            let sample = ProcessSample {
                pid: u.pid, time_us: u.time_us, sm: u.sm, memory: u.memory, encoder: 0, decoder: 0,
            };
            samples.at(index).set(sample)?;
        }
        Ok(())
    }

    fn nvmlDeviceGetEncoderUtilization, nvmlDeviceGetDecoderUtilization(of: u64, percent: Ptr<u32>, period: Ptr<u32>) {
        device(of)?;
        percent.set(0)?;
        period.set(PERIOD_US)
    }

    fn nvmlDeviceGetJpgUtilization, nvmlDeviceGetOfaUtilization(of: u64, percent: Ptr<u32>, period: Ptr<u32>) {
        device(of)?;
        percent.set(0)?;
        period.set(PERIOD_US)
    }
}

unsupported! { nvmlDeviceGetSamples nvmlDeviceGetProcessesUtilizationInfo nvmlDeviceGetEncoderStats nvmlDeviceGetEncoderCapacity
nvmlDeviceGetEncoderSessions nvmlDeviceGetFBCStats nvmlDeviceGetFBCSessions }
