//! `libcuda.so.1` at run time, by `dlsym` or by `cuGetProcAddress`.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use libloading::{Library, Symbol as Found};

use super::api::{AllocApi, Api, CuResult, Symbol};
use crate::cuda::Route;
use crate::error::WorkloadError;

const LIBRARY: &str = "libcuda.so.1";

/// The CUDA version whose prototypes [`Api`] has, as `cuGetProcAddress` wants it: 12.0.
const CUDA_VERSION: c_int = 12_000;

type GetProcAddress =
    unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_uint) -> CuResult;

/// A loaded driver and the route to its functions.
pub struct Loaded {
    library: &'static Library,
    get_proc_address: Option<GetProcAddress>,
}

impl Loaded {
    /// Loads the driver for lookups by `route`.
    ///
    /// # Errors
    /// [`WorkloadError::NoDriver`] if the library is missing, or for [`Route::Link`], which needs a
    /// program linked to the driver.
    pub fn new(route: Route) -> Result<Self, WorkloadError> {
        if route == Route::Link {
            return Err(WorkloadError::NoDriver(
                "--route link runs in workload-linked only".to_owned(),
            ));
        }
        // SAFETY: the library's initialisers are the driver's own, meant to run in any program.
        let library = unsafe { Library::new(LIBRARY) }.map_err(missing)?;
        // Never unloaded: the tables keep addresses in it for the life of the process.
        let library: &'static Library = Box::leak(Box::new(library));
        let get_proc_address = match route {
            Route::Getprocaddress => {
                let raw = address(library, "cuGetProcAddress_v2")?;
                // SAFETY: the address of cuGetProcAddress_v2, whose prototype this type is.
                Some(unsafe { std::mem::transmute::<*mut c_void, GetProcAddress>(raw) })
            }
            Route::Dlsym | Route::Link => None,
        };
        Ok(Self {
            library,
            get_proc_address,
        })
    }

    /// The address of a driver function, valid for the life of the process.
    ///
    /// # Errors
    /// [`WorkloadError::NoDriver`] if the driver does not have it.
    pub fn find(&self, symbol: Symbol) -> Result<*mut c_void, WorkloadError> {
        match self.get_proc_address {
            None => address(self.library, symbol.exported),
            Some(function) => by_get_proc_address(function, symbol.base),
        }
    }

    /// The functions that every workload uses.
    ///
    /// # Errors
    /// As [`Loaded::find`].
    pub fn api(&self) -> Result<Api, WorkloadError> {
        // SAFETY: `find` gives the never unloaded driver's functions by name, in the versions whose
        // prototypes the table has.
        unsafe { Api::from_lookup(|symbol| self.find(symbol)) }
    }

    /// The functions of the other allocation families.
    ///
    /// # Errors
    /// As [`Loaded::find`].
    pub fn alloc_api(&self) -> Result<AllocApi, WorkloadError> {
        // SAFETY: as in `api`.
        unsafe { AllocApi::from_lookup(|symbol| self.find(symbol)) }
    }
}

fn address(library: &'static Library, name: &str) -> Result<*mut c_void, WorkloadError> {
    // SAFETY: a raw pointer is a valid type for any symbol; nobody follows it here.
    let found: Found<'static, *mut c_void> =
        unsafe { library.get(name.as_bytes()) }.map_err(missing)?;
    Ok(*found)
}

fn by_get_proc_address(
    get_proc_address: GetProcAddress,
    base: &'static str,
) -> Result<*mut c_void, WorkloadError> {
    let name = CString::new(base).map_err(missing)?;
    let mut found = ptr::null_mut();
    let mut status: c_uint = 0;
    // SAFETY: a NUL-terminated name and two live outputs, as the prototype asks for.
    let code = unsafe {
        get_proc_address(
            name.as_ptr(),
            &raw mut found,
            CUDA_VERSION,
            0,
            &raw mut status,
        )
    };
    if code == 0 && !found.is_null() {
        Ok(found)
    } else {
        Err(WorkloadError::NoDriver(format!(
            "cuGetProcAddress(\"{base}\") returned {code}, status {status}"
        )))
    }
}

fn missing(error: impl std::fmt::Display) -> WorkloadError {
    WorkloadError::NoDriver(error.to_string())
}
