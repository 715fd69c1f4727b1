//! Modules, libraries and their functions.
//!
//! Functions are in a table that only grows, so that a launch finds its function without a lock. A
//! kernel of a library (`CUkernel`) is a function that belongs to no context.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use simgpu_core::AllocationKind;
use simgpu_core::kernel::CostRule;

use crate::call::Call;
use crate::code::{Code, Result};
use crate::context::{self, Context};
use crate::driver::{Driver, lock};
use crate::heap;
use crate::ptx::Image;

/// Device memory that a loaded module is charged, bytes (assumed; a few MiB are usual).
pub(crate) const MODULE_BYTES: u64 = 2 << 20;

const FIRST_MODULE: u64 = 0x7000_0000;
const FIRST_FUNCTION: u64 = 0x8000_0000;
const STEP: u64 = 0x10;
const FUNCTIONS: usize = 1 << 16;

pub(crate) struct Function {
    pub(crate) name: CString,
    /// Machine index; `None`: that of the context current at the launch.
    pub(crate) gpu: Option<usize>,
    pub(crate) rule: CostRule,
    pub(crate) module: u64,
    live: AtomicBool,
}

static TABLE: [OnceLock<Function>; FUNCTIONS] = [const { OnceLock::new() }; FUNCTIONS];
static COUNT: AtomicUsize = AtomicUsize::new(0);

struct Module {
    image: Image,
    /// `None` for a library.
    context: Option<Context>,
    functions: BTreeMap<String, u64>,
    /// Address and size of variables looked up so far.
    globals: BTreeMap<String, (u64, u64)>,
    /// GPUs on which a library is loaded.
    charged: Vec<usize>,
}

#[derive(Default)]
pub(crate) struct Modules {
    live: BTreeMap<u64, Module>,
    loaded: u64,
}

/// The function of a handle.
#[inline]
pub(crate) fn function(handle: u64) -> Result<&'static Function> {
    let index = (handle.wrapping_sub(FIRST_FUNCTION) / STEP) as usize;
    let function = TABLE
        .get(index)
        .and_then(OnceLock::get)
        .ok_or(Code::INVALID_HANDLE)?;
    if function.live.load(Acquire) {
        Ok(function)
    } else {
        Err(Code::INVALID_HANDLE)
    }
}

/// Loads a module into a context, or a library (`None`), which is charged when first used on a GPU.
pub(crate) fn load(driver: &Driver, context: Option<Context>, image: Image) -> Result<u64> {
    let mut charged = Vec::new();
    if let Some(context) = context {
        driver
            .process
            .load_module(context.gpu, MODULE_BYTES)
            .map_err(|_| Code::OUT_OF_MEMORY)?;
        charged.push(context.gpu);
    }
    let mut modules = lock(&driver.modules);
    let handle = FIRST_MODULE + modules.loaded * STEP;
    modules.loaded += 1;
    let module = Module {
        image,
        context,
        functions: BTreeMap::new(),
        globals: BTreeMap::new(),
        charged,
    };
    modules.live.insert(handle, module);
    Ok(handle)
}

pub(crate) fn unload(driver: &Driver, handle: u64) -> Result<()> {
    let module = lock(&driver.modules)
        .live
        .remove(&handle)
        .ok_or(Code::INVALID_HANDLE)?;
    drop_module(driver, module);
    Ok(())
}

fn drop_module(driver: &Driver, module: Module) {
    for handle in module.functions.values() {
        if let Ok(function) = function(*handle) {
            function.live.store(false, Release);
        }
    }
    for (address, _) in module.globals.values() {
        // A context's end may have freed it already.
        let _ = heap::free(driver, *address);
    }
    for gpu in module.charged {
        driver.process.unload_module(gpu, MODULE_BYTES);
    }
}

/// Unloads the modules of a destroyed context.
pub(crate) fn release_context(driver: &Driver, context: u64) {
    let mut modules = lock(&driver.modules);
    let of_context = |m: &Module| m.context.is_some_and(|c| c.handle == context);
    let own: Vec<u64> = modules
        .live
        .iter()
        .filter(|(_, m)| of_context(m))
        .map(|(h, _)| *h)
        .collect();
    let removed: Vec<Module> = own.iter().filter_map(|h| modules.live.remove(h)).collect();
    drop(modules);
    for module in removed {
        drop_module(driver, module);
    }
}

/// `cuModuleGetFunction`, `cuLibraryGetKernel`.
pub(crate) fn get_function(driver: &Driver, handle: u64, name: &str) -> Result<u64> {
    let mut modules = lock(&driver.modules);
    let module = modules.live.get_mut(&handle).ok_or(Code::INVALID_HANDLE)?;
    if let Some(found) = module.functions.get(name) {
        return Ok(*found);
    }
    if let Image::Text { kernels, .. } = &module.image
        && !kernels.iter().any(|k| k == name)
    {
        return Err(Code::NOT_FOUND);
    }
    let index = COUNT.fetch_add(1, Relaxed);
    let function = Function {
        name: CString::new(name).map_err(|_| Code::INVALID_VALUE)?,
        gpu: module.context.map(|c| c.gpu),
        rule: CostRule::of_name(name),
        module: handle,
        live: AtomicBool::new(true),
    };
    // Indices are given out once, so the cell is empty.
    let cell = TABLE.get(index).ok_or(Code::OUT_OF_MEMORY)?;
    cell.set(function).map_err(|_| Code::UNKNOWN)?;
    let found = FIRST_FUNCTION + index as u64 * STEP;
    module.functions.insert(name.to_owned(), found);
    Ok(found)
}

/// Names of the kernels of an image, as far as they are known.
pub(crate) fn kernel_names(driver: &Driver, handle: u64) -> Result<Vec<String>> {
    let modules = lock(&driver.modules);
    let module = modules.live.get(&handle).ok_or(Code::INVALID_HANDLE)?;
    Ok(match &module.image {
        Image::Text { kernels, .. } => kernels.clone(),
        Image::Binary => module.functions.keys().cloned().collect(),
    })
}

/// `cuModuleGetGlobal`: variables get memory when first looked up.
pub(crate) fn get_global(handle: u64, name: &str) -> Result<(u64, u64)> {
    let (driver, current) = context::current()?;
    let mut modules = lock(&driver.modules);
    let module = modules.live.get_mut(&handle).ok_or(Code::INVALID_HANDLE)?;
    if let Some(found) = module.globals.get(name) {
        return Ok(*found);
    }
    let bytes = match &module.image {
        Image::Text { globals, .. } => globals.get(name).copied().ok_or(Code::NOT_FOUND)?,
        Image::Binary => 4096,
    };
    let context = module.context.unwrap_or(current);
    let address = heap::allocate(
        driver,
        &context,
        bytes.max(1),
        AllocationKind::Linear,
        &mut Call::silent(),
    )?;
    module.globals.insert(name.to_owned(), (address, bytes));
    Ok((address, bytes))
}

/// First use of a library on the current context's GPU: its code is loaded there.
pub(crate) fn touch_library(handle: u64) -> Result<()> {
    let (driver, current) = context::current()?;
    let mut modules = lock(&driver.modules);
    let module = modules.live.get_mut(&handle).ok_or(Code::INVALID_HANDLE)?;
    if module.charged.contains(&current.gpu) {
        return Ok(());
    }
    driver
        .process
        .load_module(current.gpu, MODULE_BYTES)
        .map_err(|_| Code::OUT_OF_MEMORY)?;
    module.charged.push(current.gpu);
    Ok(())
}
