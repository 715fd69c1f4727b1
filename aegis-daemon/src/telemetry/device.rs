//! Reading one GPU.

use std::time::{Duration, Instant};

use aegis_common::policy::Tier;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, GpmSample, Nvml};

use super::processes::{self, ListCall};
use crate::sys::gpm;

/// GPM needs at least this long between two samples.
pub(super) const GPM_SPAN_MIN: Duration = Duration::from_millis(100);
/// Two GPM samples further apart say nothing about now.
const GPM_SPAN_MAX: Duration = Duration::from_secs(30);
/// `NVML_GPM_METRIC_SM_UTIL`, `…_SM_OCCUPANCY`, `…_DRAM_BW_UTIL`: all in percent.
const GPM_IDS: [u32; 3] = [2, 3, 10];

/// What a failed NVML call means for everything else.
#[derive(Debug)]
pub(super) enum Failure {
    /// This value cannot be had now.
    Value,
    /// The GPU is gone until the driver finds it again.
    Gpu(NvmlError),
    /// No call can succeed any more.
    Library(NvmlError),
}

impl From<NvmlError> for Failure {
    fn from(error: NvmlError) -> Self {
        match error {
            NvmlError::GpuLost | NvmlError::ResetRequired => Self::Gpu(error),
            NvmlError::Uninitialized
            | NvmlError::DriverNotLoaded
            | NvmlError::LibRmVersionMismatch
            | NvmlError::LibraryNotFound => Self::Library(error),
            _ => Self::Value,
        }
    }
}

/// Activity, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Activity {
    pub(super) sm_active: Option<u16>,
    pub(super) sm_occupancy: Option<u16>,
    pub(super) dram_active: Option<u16>,
}

/// The best tier that works on `device`.
pub(super) fn tier(device: &Device<'_>) -> Tier {
    // Under MIG neither counters nor utilisation of the whole device mean anything.
    if device.mig_mode().is_ok_and(|mode| mode.current != 0) {
        return Tier::None;
    }
    // The driver may support GPM and yet not let this user sample.
    if device.gpm_support().unwrap_or(false) && device.gpm_sample().is_ok() {
        return Tier::Gpm;
    }
    if device.utilization_rates().is_ok() {
        return Tier::Utilisation;
    }
    Tier::None
}

/// Reads activity through the tier found.
pub(super) struct Meter<'nvml> {
    nvml: &'nvml Nvml,
    tier: Tier,
    before: Option<(Instant, GpmSample<'nvml>)>,
    values: Option<[Option<f64>; 3]>,
}

/// What [`Meter::read`] came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Activity since the last reading.
    Activity(Activity),
    /// The first of two samples was taken: read again after [`GPM_SPAN_MIN`].
    First,
}

impl<'nvml> Meter<'nvml> {
    pub(super) fn new(nvml: &'nvml Nvml, tier: Tier) -> Self {
        Self {
            nvml,
            tier,
            before: None,
            values: None,
        }
    }

    /// # Errors
    ///
    /// Only what concerns more than this value: see [`Failure`].
    pub(super) fn read(
        &mut self,
        device: &Device<'nvml>,
        now: Instant,
    ) -> Result<Reading, Failure> {
        match self.tier {
            Tier::Gpm => self.gpm(device, now),
            Tier::Utilisation => Ok(Reading::Activity(utilisation(device)?)),
            Tier::Dcgm | Tier::None => Ok(Reading::Activity(Activity::default())),
        }
    }

    fn gpm(&mut self, device: &Device<'nvml>, now: Instant) -> Result<Reading, Failure> {
        let before = self.before.take();
        let after = match device.gpm_sample() {
            Ok(sample) => sample,
            Err(error) => return unknown(error),
        };
        let usable = before.filter(|(taken, _)| {
            let span = now.saturating_duration_since(*taken);
            (GPM_SPAN_MIN..=GPM_SPAN_MAX).contains(&span)
        });
        let Some((_, before)) = usable else {
            self.before = Some((now, after));
            return Ok(Reading::First);
        };
        let metrics = gpm::metrics(self.nvml, &before, &after, GPM_IDS);
        self.before = Some((now, after));
        let values = match metrics {
            Ok(values) => values,
            Err(error) => return unknown(error),
        };
        let previous = self.values.replace(values);
        let ran = || device.utilization_rates().is_ok_and(|rates| rates.gpu > 0);
        if repeats(previous, values) || (values.first() == Some(&Some(0.0)) && ran()) {
            return Ok(Reading::Activity(Activity::default()));
        }
        let [sm_active, sm_occupancy, dram_active] = values;
        Ok(Reading::Activity(Activity {
            sm_active: sm_active.and_then(permille),
            sm_occupancy: sm_occupancy.and_then(permille),
            dram_active: dram_active.and_then(permille),
        }))
    }
}

/// Whether counters stand still. Quotients of running counters do not come out alike in every bit
/// twice, unless the GPU is idle or busy throughout, and then they are round.
fn repeats(previous: Option<[Option<f64>; 3]>, values: [Option<f64>; 3]) -> bool {
    let round = |value: &f64| (value * 10.0).fract() == 0.0;
    previous == Some(values) && !values.iter().flatten().all(round)
}

fn unknown(error: NvmlError) -> Result<Reading, Failure> {
    match Failure::from(error) {
        Failure::Value => Ok(Reading::Activity(Activity::default())),
        other => Err(other),
    }
}

fn utilisation(device: &Device<'_>) -> Result<Activity, Failure> {
    match device.utilization_rates() {
        Ok(rates) => Ok(Activity {
            sm_active: permille(f64::from(rates.gpu)),
            sm_occupancy: None,
            dram_active: permille(f64::from(rates.memory)),
        }),
        Err(error) => match Failure::from(error) {
            Failure::Value => Ok(Activity::default()),
            other => Err(other),
        },
    }
}

/// Percent as thousandths. More than all is all: too busy errs on the safe side.
fn permille(percent: f64) -> Option<u16> {
    if !percent.is_finite() || percent < 0.0 {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=1000 before"
    )]
    Some((percent * 10.0).round().min(1000.0) as u16)
}

/// Bytes in use, what the driver reserves included; `None` if it does not answer.
///
/// # Errors
///
/// Only what concerns more than this value.
pub(super) fn used(device: &Device<'_>) -> Result<Option<u64>, Failure> {
    match device.memory_info() {
        Ok(memory) => Ok(Some(memory.used.saturating_add(memory.reserved))),
        Err(error) => match Failure::from(error) {
            Failure::Value => Ok(None),
            other => Err(other),
        },
    }
}

/// See [`processes::read`].
///
/// # Errors
///
/// Only what concerns more than this value.
pub(super) fn processes(
    device: &Device<'_>,
    call: ListCall,
) -> Result<Option<Vec<(u32, u64)>>, Failure> {
    match processes::read(device, call) {
        Ok(list) => Ok(list),
        Err(error) => match Failure::from(error) {
            Failure::Value => Ok(None),
            other => Err(other),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_unknown_and_excess_is_full() {
        assert_eq!(permille(f64::NAN), None);
        assert_eq!(permille(f64::INFINITY), None);
        assert_eq!(permille(-0.1), None);
        assert_eq!(permille(0.0), Some(0));
        assert_eq!(permille(54.96), Some(550));
        assert_eq!(permille(100.4), Some(1000));
        assert_eq!(permille(1e300), Some(1000));
    }

    #[test]
    fn counters_that_stand_still_are_told_from_steady_ones() {
        let odd = [Some(1.23456), Some(0.5), None];
        assert!(repeats(Some(odd), odd));
        assert!(!repeats(None, odd));
        assert!(!repeats(Some([Some(1.23457), Some(0.5), None]), odd));
        let idle = [Some(0.0), Some(0.0), Some(0.0)];
        assert!(!repeats(Some(idle), idle));
        let busy = [Some(100.0), Some(62.5), Some(80.0)];
        assert!(!repeats(Some(busy), busy));
    }

    #[test]
    fn errors_reach_as_far_as_they_should() {
        assert!(matches!(NvmlError::GpuLost.into(), Failure::Gpu(_)));
        assert!(matches!(
            NvmlError::Uninitialized.into(),
            Failure::Library(_)
        ));
        assert!(matches!(NvmlError::NotSupported.into(), Failure::Value));
        assert!(matches!(NvmlError::Unknown.into(), Failure::Value));
    }
}
