//! The driver's functions that the library itself calls: questions of identity, nothing else.

use core::sync::atomic::{AtomicUsize, Ordering};

use aegis_common::abi::GpuUuid;

use super::real;
use crate::sys::elf::Object;

/// `CUDA_SUCCESS`.
pub(crate) const SUCCESS: i32 = 0;
/// `CUDA_ERROR_OUT_OF_MEMORY`, the only error the library ever answers in the driver's place.
pub(crate) const OUT_OF_MEMORY: i32 = 2;

/// One function, 0 while unknown or absent.
struct Function(AtomicUsize);

impl Function {
    const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    fn get(&self) -> Option<usize> {
        if self.0.load(Ordering::Relaxed) == 0 && !real::is_learned() {
            real::learn();
        }
        Some(self.0.load(Ordering::Relaxed)).filter(|address| *address != 0)
    }
}

static CTX_GET_CURRENT: Function = Function::new();
static CTX_GET_DEVICE: Function = Function::new();
static DEVICE_GET_UUID: Function = Function::new();
static PRIMARY_GET_STATE: Function = Function::new();
static IS_CAPTURING: Function = Function::new();
static IS_CAPTURING_PER_THREAD: Function = Function::new();

/// Reads the functions' addresses from the loaded driver.
pub(super) fn learn(driver: &Object) {
    for (function, names) in [
        (&CTX_GET_CURRENT, [c"cuCtxGetCurrent"; 2]),
        (&CTX_GET_DEVICE, [c"cuCtxGetDevice"; 2]),
        // The second form tells MIG instances apart.
        (
            &DEVICE_GET_UUID,
            [c"cuDeviceGetUuid_v2", c"cuDeviceGetUuid"],
        ),
        (&PRIMARY_GET_STATE, [c"cuDevicePrimaryCtxGetState"; 2]),
        (&IS_CAPTURING, [c"cuStreamIsCapturing"; 2]),
        (&IS_CAPTURING_PER_THREAD, [c"cuStreamIsCapturing_ptsz"; 2]),
    ] {
        let address = names
            .into_iter()
            .find_map(|name| driver.function(name))
            .unwrap_or(0);
        function.0.store(address, Ordering::Relaxed);
    }
}

/// The thread's current context; `None` without one.
pub(crate) fn current_context() -> Option<u64> {
    type Real = unsafe extern "C" fn(*mut u64) -> i32;
    let address = CTX_GET_CURRENT.get()?;
    // SAFETY: the driver's function of this name has this signature.
    let real = unsafe { core::mem::transmute::<usize, Real>(address) };
    let mut context = 0;
    // SAFETY: `context` has room for a handle.
    let result = unsafe { real(&raw mut context) };
    (result == SUCCESS && context != 0).then_some(context)
}

/// The device of the thread's current context.
pub(crate) fn current_device() -> Option<i32> {
    type Real = unsafe extern "C" fn(*mut i32) -> i32;
    let address = CTX_GET_DEVICE.get()?;
    // SAFETY: the driver's function of this name has this signature.
    let real = unsafe { core::mem::transmute::<usize, Real>(address) };
    let mut device = -1;
    // SAFETY: `device` has room for a device number.
    let result = unsafe { real(&raw mut device) };
    (result == SUCCESS).then_some(device)
}

/// A device's identity.
pub(crate) fn uuid(device: i32) -> Option<GpuUuid> {
    type Real = unsafe extern "C" fn(*mut GpuUuid, i32) -> i32;
    let address = DEVICE_GET_UUID.get()?;
    // SAFETY: the driver's function of this name has this signature.
    let real = unsafe { core::mem::transmute::<usize, Real>(address) };
    let mut uuid = [0; 16];
    // SAFETY: `uuid` has the 16 bytes of a CUuuid.
    let result = unsafe { real(&raw mut uuid, device) };
    (result == SUCCESS).then_some(uuid)
}

/// Whether a device's primary context exists; `None` if the driver does not tell.
pub(crate) fn primary_is_active(device: i32) -> Option<bool> {
    type Real = unsafe extern "C" fn(i32, *mut u32, *mut i32) -> i32;
    let address = PRIMARY_GET_STATE.get()?;
    // SAFETY: the driver's function of this name has this signature.
    let real = unsafe { core::mem::transmute::<usize, Real>(address) };
    let (mut flags, mut active) = (0, 0);
    // SAFETY: both outputs have room for a number.
    let result = unsafe { real(device, &raw mut flags, &raw mut active) };
    (result == SUCCESS).then_some(active != 0)
}

/// Whether a stream is being captured. Asking is legal during a capture. `per_thread`: a null
/// handle means the thread's own default stream.
pub(crate) fn is_capturing(stream: u64, per_thread: bool) -> bool {
    capture_status(stream, per_thread).is_some_and(|status| status != NOT_CAPTURING)
}

/// Whether a stream is certainly not being captured.
pub(crate) fn capture_ended(stream: u64, per_thread: bool) -> bool {
    capture_status(stream, per_thread) == Some(NOT_CAPTURING)
}

/// `CU_STREAM_CAPTURE_STATUS_NONE`; 1 is active, 2 invalidated and not yet ended.
const NOT_CAPTURING: i32 = 0;

/// `CUstreamCaptureStatus`; `None` if the driver does not tell.
fn capture_status(stream: u64, per_thread: bool) -> Option<i32> {
    type Real = unsafe extern "C" fn(u64, *mut i32) -> i32;
    let function = if per_thread {
        &IS_CAPTURING_PER_THREAD
    } else {
        &IS_CAPTURING
    };
    let address = function.get()?;
    // SAFETY: the driver's function of this name has this signature.
    let real = unsafe { core::mem::transmute::<usize, Real>(address) };
    let mut status = NOT_CAPTURING;
    // SAFETY: `status` has room for a number.
    let result = unsafe { real(stream, &raw mut status) };
    (result == SUCCESS).then_some(status)
}
