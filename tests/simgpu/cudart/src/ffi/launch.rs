//! Kernel launches and what is asked about kernels.

use std::cell::RefCell;
use std::ffi::c_void;

use super::driver::{Driver, LaunchConfig};
use super::{Handle, In, Out, Place};
use crate::error::{Error, Result, ok};
use crate::registry;
use crate::runtime;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Size([u32; 3]);

/// `cudaLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Config {
    grid: Size,
    block: Size,
    shared_bytes: usize,
    stream: Handle,
    attributes: *const c_void,
    attribute_count: u32,
}

/// `cudaFuncAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Attributes {
    shared_bytes: usize,
    constant_bytes: usize,
    local_bytes: usize,
    /// Threads of a block at most, registers, PTX and binary version, caching mode, dynamic shared
    /// memory at most, carve-out.
    numbers: [i32; 7],
}

struct Configuration {
    grid: Size,
    block: Size,
    shared_bytes: usize,
    stream: Handle,
}

thread_local! {
    /// Between `<<<…>>>` and the kernel's host function.
    static PUSHED: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// The driver's function of a host function, on the current device.
fn function(driver: &Driver, host: usize) -> Result<Handle> {
    function_of(driver, registry::kernel(host)?)
}

fn function_of(driver: &Driver, kernel: Handle) -> Result<Handle> {
    let mut function = 0;
    ok((driver.kernel_get_function)(&mut function, kernel))?;
    Ok(function)
}

fn shared(bytes: usize) -> Result<u32> {
    u32::try_from(bytes).map_err(|_| Error::INVALID_VALUE)
}

fn launch(
    driver: &Driver,
    function: Handle,
    [grid, block]: [Size; 2],
    arguments: Place,
    shared_bytes: usize,
    stream: Handle,
) -> Result<()> {
    let (Size([gx, gy, gz]), Size([bx, by, bz])) = (grid, block);
    let bytes = shared(shared_bytes)?;
    let none = std::ptr::null_mut();
    ok((driver.launch_kernel)(
        function, gx, gy, gz, bx, by, bz, bytes, stream, arguments, none,
    ))
}

/// Values of `CUfunction_attribute` in the order of the structure's fields.
fn attributes(driver: &Driver, function: Handle) -> Result<Attributes> {
    let get = |attribute| {
        let mut value = 0;
        ok((driver.func_get_attribute)(&mut value, attribute, function))?;
        Ok(value)
    };
    let bytes = |attribute| Ok(usize::try_from(get(attribute)?).unwrap_or(0));
    Ok(Attributes {
        shared_bytes: bytes(1)?,
        constant_bytes: bytes(2)?,
        local_bytes: bytes(3)?,
        numbers: [
            get(0)?,
            get(4)?,
            get(5)?,
            get(6)?,
            get(7)?,
            get(8)?,
            get(9)?,
        ],
    })
}

api! {
    fn cudaLaunchKernel, cudaLaunchKernel_ptsz(host: usize, grid: Size, block: Size, arguments: Place, shared_bytes: usize, stream: Handle) |driver| {
        launch(driver, function(driver, host)?, [grid, block], arguments, shared_bytes, stream)
    }

    bare fn __cudaGetKernel(kernel: Out<u64>, host: usize) {
        kernel.set(registry::kernel(host)?)
    }

    fn __cudaLaunchKernel, __cudaLaunchKernel_ptsz(kernel: Handle, grid: Size, block: Size, arguments: Place, shared_bytes: usize, stream: Handle) |driver| {
        launch(driver, function_of(driver, kernel)?, [grid, block], arguments, shared_bytes, stream)
    }

    fn cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz(config: In<Config>, host: usize, arguments: Place) |driver| {
        let config = config.get()?;
        let (Size(grid), Size(block)) = (config.grid, config.block);
        let config = LaunchConfig {
            grid,
            block,
            shared_bytes: shared(config.shared_bytes)?,
            stream: config.stream,
            attributes: config.attributes,
            attribute_count: config.attribute_count,
        };
        ok((driver.launch_kernel_ex)(&config, function(driver, host)?, arguments, std::ptr::null_mut()))
    }

    fn cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz(host: usize, grid: Size, block: Size, arguments: Place, shared_bytes: usize, stream: Handle) |driver| {
        let (Size([gx, gy, gz]), Size([bx, by, bz])) = (grid, block);
        let bytes = shared(shared_bytes)?;
        ok((driver.launch_cooperative_kernel)(function(driver, host)?, gx, gy, gz, bx, by, bz, bytes, stream, arguments))
    }

    fn cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz(stream: Handle, host: Place, data: Place) |driver| {
        ok((driver.launch_host_func)(stream, host, data))
    }

    fn cudaFuncGetAttributes(result: Out<Attributes>, host: usize) |driver| {
        result.set(attributes(driver, function(driver, host)?)?)
    }

    fn cudaFuncSetAttribute(host: usize, attribute: i32, value: i32) |driver| {
        ok((driver.func_set_attribute)(function(driver, host)?, attribute, value))
    }

    fn cudaFuncSetCacheConfig(host: usize, value: i32) |driver| {
        ok((driver.func_set_cache_config)(function(driver, host)?, value))
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(count: Place, host: usize, block: i32, shared_bytes: usize) |driver| {
        ok((driver.occupancy_blocks)(count, function(driver, host)?, block, shared_bytes, 0))
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count: Place, host: usize, block: i32, shared_bytes: usize, flags: u32) |driver| {
        ok((driver.occupancy_blocks)(count, function(driver, host)?, block, shared_bytes, flags))
    }

    bare fn __cudaPopCallConfiguration(grid: Out<Size>, block: Out<Size>, shared_bytes: Out<usize>, stream: Out<u64>) {
        let pushed = PUSHED.with_borrow_mut(Vec::pop).ok_or(Error::MISSING_CONFIGURATION)?;
        grid.set(pushed.grid)?;
        block.set(pushed.block)?;
        shared_bytes.set(pushed.shared_bytes)?;
        stream.set(pushed.stream)
    }

    bare fn cudaGetSymbolAddress(address: Out<u64>, symbol: usize) {
        runtime::context()?;
        address.set(registry::variable(symbol)?.0)
    }

    bare fn cudaGetSymbolSize(bytes: Out<usize>, symbol: usize) {
        runtime::context()?;
        bytes.set(registry::variable(symbol)?.1)
    }
}

/// 0, or what keeps the kernel from being launched.
#[unsafe(no_mangle)]
pub(super) extern "C" fn __cudaPushCallConfiguration(
    grid: Size,
    block: Size,
    shared_bytes: usize,
    stream: Handle,
) -> u32 {
    let pushed = Configuration {
        grid,
        block,
        shared_bytes,
        stream,
    };
    PUSHED.with_borrow_mut(|list| list.push(pushed));
    0
}
