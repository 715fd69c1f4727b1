//! What programs built by nvcc register when they are loaded: images with their kernels and
//! variables. An image is loaded when something of it is first used.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::error::{Error, Result, ok};
use crate::runtime::driver;

#[derive(Debug)]
struct Symbol {
    binary: usize,
    /// Address of the NUL-terminated name in the program's image.
    name: usize,
    bytes: usize,
    /// The kernel, 0 until it is first used.
    kernel: AtomicU64,
}

#[derive(Debug)]
struct Binary {
    /// Address of what nvcc's wrapper describes.
    image: usize,
    library: AtomicU64,
}

#[derive(Debug, Default)]
struct Registry {
    binaries: HashMap<usize, Binary>,
    last: usize,
    /// By the address of the host function or variable.
    symbols: HashMap<usize, Symbol>,
}

static REGISTRY: LazyLock<RwLock<Registry>> = LazyLock::new(RwLock::default);

/// Registers an image; returns its handle.
pub(crate) fn add_binary(image: usize) -> usize {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    registry.last += 1;
    let handle = registry.last;
    let library = AtomicU64::new(0);
    registry.binaries.insert(handle, Binary { image, library });
    handle
}

/// Forgets an image and unloads what of it is loaded.
pub(crate) fn remove_binary(handle: usize) {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    registry.symbols.retain(|_, symbol| symbol.binary != handle);
    let library = registry.binaries.remove(&handle).map(|b| b.library);
    drop(registry);
    let library = library.map_or(0, AtomicU64::into_inner);
    if library != 0
        && let Ok(driver) = driver()
    {
        // At the process's end, perhaps after the driver's own.
        let _ = (driver.library_unload)(library);
    }
}

/// Registers a kernel (0 bytes) or variable.
pub(crate) fn add_symbol(binary: usize, host: usize, name: *const c_char, bytes: usize) {
    let symbol = Symbol {
        binary,
        name: name.expose_provenance(),
        bytes,
        kernel: AtomicU64::new(0),
    };
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    registry.symbols.insert(host, symbol);
}

/// The library of an image, loaded if it is not yet.
pub(crate) fn library(handle: usize) -> Result<u64> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    let binary = registry.binaries.get(&handle);
    loaded(binary.ok_or(Error::INVALID_VALUE)?)
}

fn loaded(binary: &Binary) -> Result<u64> {
    let library = binary.library.load(Relaxed);
    if library != 0 {
        return Ok(library);
    }
    let driver = driver()?;
    let mut made = 0;
    ok((driver.library_load_data)(
        &mut made,
        std::ptr::with_exposed_provenance(binary.image),
        std::ptr::null(),
        std::ptr::null(),
        0,
        std::ptr::null(),
        std::ptr::null(),
        0,
    ))?;
    match binary.library.compare_exchange(0, made, Relaxed, Relaxed) {
        Ok(_) => Ok(made),
        Err(first) => {
            ok((driver.library_unload)(made))?;
            Ok(first)
        }
    }
}

/// The kernel of a host function.
pub(crate) fn kernel(host: usize) -> Result<u64> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    let symbol = registry.symbols.get(&host);
    let symbol = symbol.filter(|symbol| symbol.bytes == 0);
    let symbol = symbol.ok_or(Error::INVALID_FUNCTION)?;
    let known = symbol.kernel.load(Relaxed);
    if known != 0 {
        return Ok(known);
    }
    let binary = registry.binaries.get(&symbol.binary);
    let library = loaded(binary.ok_or(Error::INVALID_FUNCTION)?)?;
    let mut kernel = 0;
    let name = std::ptr::with_exposed_provenance(symbol.name);
    ok((driver()?.library_get_kernel)(&mut kernel, library, name))?;
    symbol.kernel.store(kernel, Relaxed);
    Ok(kernel)
}

/// Device address and size of a host variable's counterpart.
pub(crate) fn variable(host: usize) -> Result<(u64, usize)> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    let symbol = registry.symbols.get(&host);
    let symbol = symbol.filter(|symbol| symbol.bytes > 0);
    let symbol = symbol.ok_or(Error::INVALID_SYMBOL)?;
    let binary = registry.binaries.get(&symbol.binary);
    let library = loaded(binary.ok_or(Error::INVALID_SYMBOL)?)?;
    let mut address = 0;
    let mut bytes = 0;
    let name = std::ptr::with_exposed_provenance(symbol.name);
    ok((driver()?.library_get_global)(
        &mut address,
        &mut bytes,
        library,
        name,
    ))?;
    Ok((address, symbol.bytes))
}
