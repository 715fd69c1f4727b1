//! `nvmlGpmMetricsGet` with room for drivers newer than the bindings.
//!
//! The request struct ends in an array of metric slots that grew from 98 to 210 to 333 between
//! header releases under one and the same version number. A driver that touches all the slots it
//! knows would write past the end of the struct nvml-wrapper keeps on its stack, so the request is
//! made here, on the heap, with more slots than any known header has.

use std::ffi::{c_char, c_uint, c_void};
use std::ptr;

use nvml_wrapper::error::{NvmlError, nvml_try};
use nvml_wrapper::{GpmSample, Nvml};

/// `NVML_GPM_METRICS_GET_VERSION`.
const VERSION: c_uint = 1;
/// Three times the 333 slots of the largest header seen (mid-2026).
const SLOTS: usize = 1024;

/// `nvmlGpmMetric_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Metric {
    id: c_uint,
    status: c_uint,
    value: f64,
    short_name: *const c_char,
    long_name: *const c_char,
    unit: *const c_char,
}

/// `nvmlGpmMetricsGet_t`.
#[repr(C)]
struct Request {
    version: c_uint,
    count: c_uint,
    before: *mut c_void,
    after: *mut c_void,
    metrics: [Metric; SLOTS],
}

const _: () = {
    assert!(size_of::<Metric>() == 40);
    assert!(std::mem::offset_of!(Request, metrics) == 24);
};

/// The metrics numbered `ids` over the time between two samples of one device. A metric whose own
/// status is not success, or that is NaN or infinite, is `None`.
///
/// # Errors
///
/// [`NvmlError::FailedToLoadSymbol`] if the library has no GPM, else the call's own status.
pub fn metrics<const N: usize>(
    nvml: &Nvml,
    before: &GpmSample<'_>,
    after: &GpmSample<'_>,
    ids: [u32; N],
) -> Result<[Option<f64>; N], NvmlError> {
    const { assert!(N <= SLOTS) };
    let get = match nvml.lib().nvmlGpmMetricsGet.as_ref() {
        Ok(get) => *get,
        Err(error) => return Err(NvmlError::FailedToLoadSymbol(error.to_string())),
    };
    let mut request = Box::new(Request {
        version: VERSION,
        count: u32::try_from(N).unwrap_or(0),
        // SAFETY: the borrowed handle is only used in the call below, during which `before` keeps
        // the sample alive.
        before: unsafe { before.handle() }.cast(),
        // SAFETY: as for `before`.
        after: unsafe { after.handle() }.cast(),
        metrics: [Metric {
            id: 0,
            status: 0,
            value: f64::NAN,
            short_name: ptr::null(),
            long_name: ptr::null(),
            unit: ptr::null(),
        }; SLOTS],
    });
    for (slot, id) in request.metrics.iter_mut().zip(ids) {
        slot.id = id;
    }
    // SAFETY: `request` has the layout of the header's struct (asserted above) and is at least as
    // large as in any header; both samples are alive; the function pointer belongs to the library
    // that `nvml` keeps loaded.
    let status = unsafe { get((&raw mut *request).cast()) };
    nvml_try(status)?;
    let mut slots = request.metrics.iter();
    Ok(std::array::from_fn(|_| {
        let slot = slots.next()?;
        (slot.status == 0 && slot.value.is_finite()).then_some(slot.value)
    }))
}
