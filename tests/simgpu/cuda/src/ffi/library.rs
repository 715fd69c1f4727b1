//! Libraries and kernels: modules that belong to no context.

use std::ffi::{c_char, c_void};

use crate::call::Call;
use crate::code::{Code, Result};
use crate::driver;
use crate::ffi::module::{FUNCTION_ATTRIBUTES, read_file, read_image};
use crate::ffi::pointers::{In, Out, Text};
use crate::module;
use crate::ptx::Image;

fn load(result: Out<u64>, image: Result<Image>, call: &mut Call) -> Result<()> {
    result.check()?;
    let handle = module::load(driver::get()?, None, image?)?;
    call.hex("library", handle);
    result.set(handle)
}

/// Handles of all kernels of a module or library.
pub(super) fn names(library: u64) -> Result<Vec<u64>> {
    let driver = driver::get()?;
    let names = module::kernel_names(driver, library)?;
    names
        .iter()
        .map(|name| module::get_function(driver, library, name))
        .collect()
}

export! {
    journalled fn cuLibraryLoadData(result: Out<u64>, image: In<c_void>, _options: In<i32>, _values: In<c_void>, _count: u32, _library_options: In<i32>, _library_values: In<c_void>, _library_count: u32) |call| {
        load(result, read_image(image), call)
    }

    journalled fn cuLibraryLoadFromFile(result: Out<u64>, path: Text, _options: In<i32>, _values: In<c_void>, _count: u32, _library_options: In<i32>, _library_values: In<c_void>, _library_count: u32) |call| {
        load(result, read_file(path), call)
    }

    journalled fn cuLibraryUnload(library: u64) |call| {
        call.hex("library", library);
        module::unload(driver::get()?, library)
    }

    journalled fn cuLibraryGetKernel(result: Out<u64>, library: u64, name: Text) |call| {
        let name = name.text()?;
        call.hex("library", library);
        call.arg("name", &name);
        result.check()?;
        result.set(module::get_function(driver::get()?, library, &name)?)
    }

    journalled fn cuLibraryGetKernelCount(count: Out<u32>, library: u64) |call| {
        call.hex("library", library);
        count.set(module::kernel_names(driver::get()?, library)?.len() as u32)
    }

    journalled fn cuLibraryEnumerateKernels(kernels: Out<u64>, count: u32, library: u64) |call| {
        call.hex("library", library);
        kernels.set_all(names(library)?, count as usize)
    }

    journalled fn cuLibraryGetModule(result: Out<u64>, library: u64) |call| {
        call.hex("library", library);
        module::touch_library(library)?;
        result.set(library)
    }

    journalled fn cuLibraryGetGlobal(pointer: Out<u64>, bytes: Out<usize>, library: u64, name: Text) |call| {
        let name = name.text()?;
        call.hex("library", library);
        call.arg("name", &name);
        let (address, size) = module::get_global(library, &name)?;
        pointer.set_if_wanted(address);
        bytes.set_if_wanted(size as usize);
        Ok(())
    }

    journalled fn cuKernelGetFunction(result: Out<u64>, kernel: u64) |_call| {
        let module = module::function(kernel)?.module;
        module::touch_library(module)?;
        result.set(kernel)
    }

    journalled fn cuKernelGetLibrary(result: Out<u64>, kernel: u64) |_call| {
        result.set(module::function(kernel)?.module)
    }

    journalled fn cuKernelGetName(name: Out<*const c_char>, kernel: u64) |_call| {
        name.set(module::function(kernel)?.name.as_ptr())
    }

    journalled fn cuKernelGetAttribute(value: Out<i32>, attribute: i32, kernel: u64, _device: i32) |call| {
        call.arg("attribute", attribute);
        module::function(kernel)?;
        let found = usize::try_from(attribute).ok().and_then(|a| FUNCTION_ATTRIBUTES.get(a));
        value.set(*found.ok_or(Code::INVALID_VALUE)?)
    }

    journalled fn cuKernelSetAttribute(attribute: i32, value: i32, kernel: u64, _device: i32) |call| {
        call.arg("attribute", attribute);
        call.arg("value", value);
        module::function(kernel).map(drop)
    }

    journalled fn cuKernelSetCacheConfig(kernel: u64, value: i32, _device: i32) |call| {
        call.arg("value", value);
        module::function(kernel).map(drop)
    }
}

unsupported! { cuLibraryGetManaged cuLibraryGetUnifiedFunction }
