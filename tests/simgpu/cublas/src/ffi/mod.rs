//! The exported functions. Of their arguments only sizes and handles are looked at: results are
//! pointers that the caller vouches for, matrices are never touched.

mod handle;
mod level2;
mod level3;
mod light;
mod unsupported;

use std::ffi::c_void;

use simgpu_core::kernel::Cost;
use simgpu_cudart::{Driver, LaunchConfig, Out};

use crate::state::{Result, Status};

/// A pointer that is not looked at.
type Ignored = *const c_void;

/// Defines exported functions from their bodies.
macro_rules! cublas {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub(super) extern "C" fn $name($($arg: $ty),*) -> i32 {
            crate::ffi::status(|| $body)
        }
    )*};
}
use cublas;

fn status(body: impl FnOnce() -> Result<()>) -> i32 {
    body().map_or_else(|Status(code)| code, |()| 0)
}

/// Writes a result.
fn give<T>(place: Out<T>, value: T) -> Result<()> {
    place.set(value).map_err(|_| Status::INVALID_VALUE)
}

/// A size as the interface has it.
fn size(value: i32) -> Result<u64> {
    u64::try_from(value).map_err(|_| Status::INVALID_VALUE)
}

/// Loads NUL-terminated PTX and finds the kernel of a NUL-terminated name in it.
pub(crate) fn load_kernel(driver: &Driver, image: &str, name: &[u8]) -> Result<u64> {
    let none = std::ptr::null();
    let mut library = 0;
    let mut kernel = 0;
    let image = image.as_ptr().cast();
    let loaded = (driver.library_load_data)(&mut library, image, none, none, 0, none, none, 0);
    let found = (driver.library_get_kernel)(&mut kernel, library, name.as_ptr().cast());
    if loaded != 0 || found != 0 {
        return Err(Status::NOT_INITIALIZED);
    }
    Ok(kernel)
}

/// Launches `sim_timed` with a cost.
pub(crate) fn launch(driver: &Driver, kernel: u64, stream: u64, cost: &Cost) -> Result<()> {
    let mut duration = cost.duration_ns;
    let mut shares = [cost.sm_active, cost.sm_occupancy, cost.dram_active];
    let [active, occupancy, dram] = &mut shares;
    let mut arguments: [*mut c_void; 4] = [
        (&raw mut duration).cast(),
        (&raw mut *active).cast(),
        (&raw mut *occupancy).cast(),
        (&raw mut *dram).cast(),
    ];
    let config = LaunchConfig {
        grid: [1, 1, 1],
        block: [256, 1, 1],
        shared_bytes: 0,
        stream,
        attributes: std::ptr::null(),
        attribute_count: 0,
    };
    let mut function = 0;
    let arguments = (&raw mut arguments).cast();
    let found = (driver.kernel_get_function)(&mut function, kernel);
    let launched = (driver.launch_kernel_ex)(&config, function, arguments, std::ptr::null_mut());
    if found != 0 || launched != 0 {
        return Err(Status::EXECUTION_FAILED);
    }
    Ok(())
}
