//! State of a device: temperature, power, clocks, modes.

use crate::code::Code;
use crate::ffi::pointers::Ptr;
use crate::library::device;

/// Idle and full-load figures of the simulated board (assumed).
const IDLE_MILLIWATTS: u32 = 50_000;
const LIMIT_MILLIWATTS: u32 = 400_000;
const IDLE_CELSIUS: u32 = 30;

fn load(of: u64) -> crate::code::Result<f64> {
    let device = device(of)?;
    Ok(device.machine.recent_utilization(device.gpu).0)
}

export! {
    fn nvmlDeviceGetTemperature(of: u64, sensor: u32, celsius: Ptr<u32>) {
        if sensor != 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        celsius.set(IDLE_CELSIUS + (load(of)? * 40.0) as u32)
    }

    fn nvmlDeviceGetTemperatureThreshold(of: u64, _kind: u32, celsius: Ptr<u32>) {
        device(of)?;
        celsius.set(92)
    }

    fn nvmlDeviceGetPowerUsage(of: u64, milliwatts: Ptr<u32>) {
        let above_idle = f64::from(LIMIT_MILLIWATTS - IDLE_MILLIWATTS) * load(of)?;
        milliwatts.set(IDLE_MILLIWATTS + above_idle as u32)
    }

    fn nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetPowerManagementLimit(of: u64, milliwatts: Ptr<u32>) {
        device(of)?;
        milliwatts.set(LIMIT_MILLIWATTS)
    }

    fn nvmlDeviceGetPowerManagementDefaultLimit(of: u64, milliwatts: Ptr<u32>) {
        device(of)?;
        milliwatts.set(LIMIT_MILLIWATTS)
    }

    fn nvmlDeviceGetPowerManagementLimitConstraints(of: u64, least: Ptr<u32>, most: Ptr<u32>) {
        device(of)?;
        least.set(100_000)?;
        most.set(LIMIT_MILLIWATTS)
    }

    fn nvmlDeviceGetPowerManagementMode(of: u64, mode: Ptr<u32>) {
        device(of)?;
        mode.set(1)
    }

    fn nvmlDeviceGetTotalEnergyConsumption(of: u64, millijoules: Ptr<u64>) {
        let busy_s = device(of)?.usage()?.busy_ns as f64 / 1e9;
        millijoules.set((busy_s * f64::from(LIMIT_MILLIWATTS)) as u64)
    }

    fn nvmlDeviceGetPerformanceState, nvmlDeviceGetPowerState(of: u64, state: Ptr<u32>) {
        device(of)?;
        state.set(0)
    }

    fn nvmlDeviceGetPersistenceMode(of: u64, mode: Ptr<u32>) {
        device(of)?;
        mode.set(1)
    }

    fn nvmlDeviceGetComputeMode(of: u64, mode: Ptr<u32>) {
        device(of)?;
        mode.set(0)
    }

    fn nvmlDeviceGetDisplayMode, nvmlDeviceGetDisplayActive(of: u64, mode: Ptr<u32>) {
        device(of)?;
        mode.set(0)
    }

    fn nvmlDeviceGetClockInfo, nvmlDeviceGetMaxClockInfo(of: u64, kind: u32, mhz: Ptr<u32>) {
        device(of)?;
        // 0 graphics, 1 SM, 2 memory, 3 video
        mhz.set(match kind {
            0 | 1 => 1410,
            2 => 1215,
            3 => 1275,
            _ => return Err(Code::INVALID_ARGUMENT),
        })
    }

    fn nvmlDeviceGetMemoryBusWidth(of: u64, bits: Ptr<u32>) {
        device(of)?;
        bits.set(5120)
    }

    fn nvmlDeviceGetEccMode(of: u64, current: Ptr<u32>, pending: Ptr<u32>) {
        device(of)?;
        current.set(1)?;
        pending.set(1)
    }

    fn nvmlDeviceGetTotalEccErrors(of: u64, _kind: u32, _counter: u32, count: Ptr<u64>) {
        device(of)?;
        count.set(0)
    }

    fn nvmlDeviceGetMemoryErrorCounter(of: u64, _kind: u32, _counter: u32, _location: u32, count: Ptr<u64>) {
        device(of)?;
        count.set(0)
    }

    fn nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDeviceGetCurrentClocksEventReasons(of: u64, reasons: Ptr<u64>) {
        device(of)?;
        reasons.set(0)
    }

    fn nvmlDeviceGetSupportedClocksThrottleReasons, nvmlDeviceGetSupportedClocksEventReasons(of: u64, reasons: Ptr<u64>) {
        device(of)?;
        reasons.set(0)
    }

    fn nvmlDeviceGetFieldValues(of: u64, count: i32, values: Ptr<FieldValue>) {
        device(of)?;
        for index in 0..usize::try_from(count).map_err(|_| Code::INVALID_ARGUMENT)? {
            let value = values.at(index);
            value.set(FieldValue { result: Code::NOT_SUPPORTED.0, ..value.get()? })?;
        }
        Ok(())
    }

    fn nvmlDeviceGetMigMode(of: u64, current: Ptr<u32>, pending: Ptr<u32>) {
        device(of)?;
        current.set(0)?;
        pending.set(0)
    }

    fn nvmlDeviceIsMigDeviceHandle(of: u64, is_mig: Ptr<u32>) {
        device(of)?;
        is_mig.set(0)
    }

    fn nvmlDeviceGetMaxMigDeviceCount(of: u64, count: Ptr<u32>) {
        device(of)?;
        count.set(0)
    }

    fn nvmlDeviceGetMigDeviceHandleByIndex(of: u64, _index: u32, _result: Ptr<u64>) {
        device(of)?;
        Err(Code::NOT_FOUND)
    }

    fn nvmlDeviceGetVirtualizationMode(of: u64, mode: Ptr<u32>) {
        device(of)?;
        mode.set(0)
    }
}

/// `nvmlFieldValue_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FieldValue {
    field: u32,
    scope: u32,
    time: i64,
    latency: i64,
    kind: u32,
    result: u32,
    value: u64,
}

unsupported! {
    nvmlDeviceGetFanSpeed nvmlDeviceGetFanSpeed_v2 nvmlDeviceGetNumFans nvmlDeviceGetDriverModel nvmlDeviceGetDriverModel_v2
    nvmlDeviceGetViolationStatus nvmlDeviceGetRetiredPages nvmlDeviceGetRetiredPages_v2
    nvmlDeviceGetRemappedRows nvmlDeviceGetDetailedEccErrors nvmlDeviceGetApplicationsClock
    nvmlDeviceGetDefaultApplicationsClock nvmlDeviceGetSupportedMemoryClocks
    nvmlDeviceGetSupportedGraphicsClocks nvmlDeviceGetClock nvmlDeviceGetPcieThroughput
    nvmlDeviceGetPcieReplayCounter nvmlDeviceGetBridgeChipInfo nvmlDeviceSetPersistenceMode
    nvmlDeviceSetMemoryLimits_v1 nvmlDeviceGetMemoryLimits_v1 nvmlDeviceSetMigMode
}
