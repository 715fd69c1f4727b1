//! Modules and functions.

use std::ffi::{c_char, c_void};

use crate::call::Call;
use crate::code::{Code, Result};
use crate::context;
use crate::driver;
use crate::ffi::library::names;
use crate::ffi::pointers::{In, Out, Text};
use crate::module;
use crate::ptx::{self, Image};

/// Reads an image: binary by its first bytes, else NUL-terminated PTX.
pub(super) fn read_image(image: In<c_void>) -> Result<Image> {
    // Byte by byte: a text may be shorter than four bytes.
    let bytes: In<u8> = image.cast();
    let mut start = [0u8; 4];
    for (index, byte) in start.iter_mut().enumerate() {
        *byte = bytes.at(index)?;
        if *byte == 0 {
            break;
        }
    }
    if ptx::is_binary(start) {
        return Ok(Image::Binary);
    }
    let text = image.cast::<c_char>().text()?;
    ptx::parse(&text).ok_or(Code::INVALID_IMAGE)
}

/// Reads an image from a file.
pub(super) fn read_file(path: Text) -> Result<Image> {
    let bytes = std::fs::read(path.text()?).map_err(|_| Code::FILE_NOT_FOUND)?;
    let start = bytes.get(..4).and_then(|s| s.try_into().ok());
    if start.is_some_and(ptx::is_binary) {
        return Ok(Image::Binary);
    }
    ptx::parse(&String::from_utf8_lossy(&bytes)).ok_or(Code::INVALID_IMAGE)
}

fn load(result: Out<u64>, image: Result<Image>, call: &mut Call) -> Result<()> {
    result.check()?;
    let (driver, context) = context::current()?;
    let handle = module::load(driver, Some(context), image?)?;
    call.hex("module", handle);
    result.set(handle)
}

/// Values of `CUfunction_attribute`, from 0: most threads in a block, static shared memory, constant
/// memory, local memory, registers, PTX and binary version, caching mode, and so on.
pub(super) const FUNCTION_ATTRIBUTES: [i32; 16] =
    [1024, 0, 0, 0, 32, 80, 80, 0, 48 << 10, -1, 0, 0, 0, 0, 0, 0];

fn blocks_for(function: u64, block: i32) -> Result<i32> {
    module::function(function)?;
    if block <= 0 {
        Err(Code::INVALID_VALUE)
    } else {
        Ok((2048 / block).clamp(1, 32))
    }
}

export! {
    journalled fn cuModuleLoad(result: Out<u64>, path: Text) |call| {
        load(result, read_file(path), call)
    }

    journalled fn cuModuleLoadData(result: Out<u64>, image: In<c_void>) |call| {
        load(result, read_image(image), call)
    }

    journalled fn cuModuleLoadDataEx(result: Out<u64>, image: In<c_void>, _count: u32, _options: In<i32>, _values: In<c_void>) |call| {
        load(result, read_image(image), call)
    }

    journalled fn cuModuleLoadFatBinary(result: Out<u64>, image: In<c_void>) |call| {
        load(result, read_image(image), call)
    }

    journalled fn cuModuleUnload(module: u64) |call| {
        call.hex("module", module);
        module::unload(driver::get()?, module)
    }

    journalled fn cuModuleGetLoadingMode(mode: Out<i32>) |_call| {
        // 1 = eager
        mode.set(1)
    }

    journalled fn cuModuleGetFunction(result: Out<u64>, module: u64, name: Text) |call| {
        let name = name.text()?;
        call.hex("module", module);
        call.arg("name", &name);
        result.check()?;
        result.set(module::get_function(driver::get()?, module, &name)?)
    }

    journalled fn cuModuleGetFunctionCount(count: Out<u32>, module: u64) |call| {
        call.hex("module", module);
        count.set(module::kernel_names(driver::get()?, module)?.len() as u32)
    }

    journalled fn cuModuleEnumerateFunctions(functions: Out<u64>, count: u32, module: u64) |call| {
        call.hex("module", module);
        functions.set_all(names(module)?, count as usize)
    }

    journalled fn cuModuleGetGlobal_v2(pointer: Out<u64>, bytes: Out<usize>, module: u64, name: Text) |call| {
        let name = name.text()?;
        call.hex("module", module);
        call.arg("name", &name);
        let (address, size) = module::get_global(module, &name)?;
        pointer.set_if_wanted(address);
        bytes.set_if_wanted(size as usize);
        Ok(())
    }

    journalled fn cuFuncGetAttribute(value: Out<i32>, attribute: i32, function: u64) |call| {
        call.arg("attribute", attribute);
        module::function(function)?;
        let found = usize::try_from(attribute).ok().and_then(|a| FUNCTION_ATTRIBUTES.get(a));
        value.set(*found.ok_or(Code::INVALID_VALUE)?)
    }

    journalled fn cuFuncSetAttribute(function: u64, attribute: i32, value: i32) |call| {
        call.arg("attribute", attribute);
        call.arg("value", value);
        module::function(function).map(drop)
    }

    journalled fn cuFuncSetCacheConfig(function: u64, value: i32) |call| {
        call.arg("value", value);
        module::function(function).map(drop)
    }

    journalled fn cuFuncSetSharedMemConfig(function: u64, value: i32) |call| {
        call.arg("value", value);
        module::function(function).map(drop)
    }

    journalled fn cuFuncGetModule(result: Out<u64>, function: u64) |_call| {
        result.set(module::function(function)?.module)
    }

    journalled fn cuFuncGetName(name: Out<*const c_char>, function: u64) |_call| {
        name.set(module::function(function)?.name.as_ptr())
    }

    journalled fn cuFuncIsLoaded(state: Out<i32>, function: u64) |_call| {
        module::function(function)?;
        state.set(1)
    }

    journalled fn cuFuncLoad(function: u64) |_call| {
        module::function(function).map(drop)
    }

    counted fn cuOccupancyMaxActiveBlocksPerMultiprocessor(count: Out<i32>, function: u64, block: i32, _shared_bytes: usize) {
        count.set(blocks_for(function, block)?)
    }

    counted fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count: Out<i32>, function: u64, block: i32, _shared_bytes: usize, _flags: u32) {
        count.set(blocks_for(function, block)?)
    }

    counted fn cuOccupancyMaxPotentialBlockSize(least_grid: Out<i32>, block: Out<i32>, function: u64, _shared_of: usize, _shared_bytes: usize, limit: i32) {
        module::function(function)?;
        block.set(if limit > 0 { limit.min(1024) } else { 1024 })?;
        least_grid.set(2 * 108)
    }

    counted fn cuOccupancyMaxActiveClusters(count: Out<i32>, function: u64, _config: In<c_void>) {
        module::function(function)?;
        count.set(0)
    }

    counted fn cuOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, function: u64, blocks: i32, _block: i32) {
        module::function(function)?;
        let blocks = usize::try_from(blocks).ok().filter(|b| *b > 0).ok_or(Code::INVALID_VALUE)?;
        bytes.set((164 << 10) / blocks)
    }
}
