//! The driver API of a built library, loaded from a driver directory, as a client sees it.

#![expect(dead_code, reason = "each test program uses a part of it")]

use std::ffi::{c_char, c_void};
use std::path::PathBuf;

use libloading::{Library, Symbol};
use simgpu_core::kernel::{Cost, PTX};
use simgpu_core::{Machine, MachineConfig};

/// A machine in a directory of its own, with the library that this package builds.
pub(crate) struct Fixture {
    pub(crate) machine: Machine,
    pub(crate) directory: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new(config: &MachineConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::create(directory.path(), config).unwrap();
        // The NVML library is another package's; nothing here opens it.
        machine
            .install_libraries(&built_library(), &built_library())
            .unwrap();
        Self { machine, directory }
    }

    pub(crate) fn driver(&self) -> Driver {
        Driver::open(&self.directory.path().join("libcuda.so.1"))
    }

    /// The driver, initialised, with a context on device 0.
    pub(crate) fn ready(&self) -> Driver {
        let driver = self.driver();
        driver.init().unwrap();
        driver.create_context(0).unwrap();
        driver
    }
}

/// `libsimgpu_cuda.so`, beside the test program or one above (examples).
pub(crate) fn built_library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folders = program.ancestors().skip(1).take(2);
    let mut found = folders
        .map(|f| f.join("libsimgpu_cuda.so"))
        .filter(|p| p.exists());
    found
        .next()
        .expect("libsimgpu_cuda.so is built with its tests")
}

pub(crate) type Result<T> = std::result::Result<T, i32>;

pub(crate) struct Driver {
    library: Library,
}

fn check(code: i32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// Calls an exported function of the given signature.
macro_rules! call {
    ($driver:expr, $name:literal, ($($ty:ty),*), $($arg:expr),* $(,)?) => {{
        type Function = unsafe extern "C" fn($($ty),*) -> i32;
        // SAFETY: the signature is that of cuda.h for this name.
        let function = unsafe { $driver.library.get::<Function>($name) };
        let function: Symbol<'_, Function> = function.unwrap();
        // SAFETY: pointers among the arguments are to live values of the right types.
        let code = unsafe { function($($arg),*) };
        check(code)
    }};
}

mod memory;

impl Driver {
    pub(crate) fn open(path: &std::path::Path) -> Self {
        // SAFETY: loading the library runs no code of its own.
        let library = unsafe { Library::new(path) };
        Self {
            library: library.unwrap(),
        }
    }

    pub(crate) fn init(&self) -> Result<()> {
        call!(self, "cuInit", (u32), 0)
    }

    pub(crate) fn device_count(&self) -> Result<i32> {
        let mut count = 0;
        call!(self, "cuDeviceGetCount", (*mut i32), &raw mut count).map(|()| count)
    }

    pub(crate) fn device_uuid(&self, device: i32) -> Result<[u8; 16]> {
        let mut uuid = [0; 16];
        call!(
            self,
            "cuDeviceGetUuid_v2",
            (*mut [u8; 16], i32),
            &raw mut uuid,
            device
        )
        .map(|()| uuid)
    }

    pub(crate) fn create_context(&self, device: i32) -> Result<u64> {
        let mut context = 0;
        call!(
            self,
            "cuCtxCreate_v2",
            (*mut u64, u32, i32),
            &raw mut context,
            0,
            device
        )
        .map(|()| context)
    }

    pub(crate) fn destroy_context(&self, context: u64) -> Result<()> {
        call!(self, "cuCtxDestroy_v2", (u64), context)
    }

    pub(crate) fn retain_primary(&self, device: i32) -> Result<u64> {
        let mut context = 0;
        call!(
            self,
            "cuDevicePrimaryCtxRetain",
            (*mut u64, i32),
            &raw mut context,
            device
        )
        .map(|()| context)
    }

    pub(crate) fn release_primary(&self, device: i32) -> Result<()> {
        call!(self, "cuDevicePrimaryCtxRelease_v2", (i32), device)
    }

    pub(crate) fn set_current(&self, context: u64) -> Result<()> {
        call!(self, "cuCtxSetCurrent", (u64), context)
    }

    pub(crate) fn current(&self) -> Result<u64> {
        let mut context = 0;
        call!(self, "cuCtxGetCurrent", (*mut u64), &raw mut context).map(|()| context)
    }

    pub(crate) fn load_module(&self, image: &str) -> Result<u64> {
        assert!(image.ends_with('\0'));
        let mut module = 0;
        call!(
            self,
            "cuModuleLoadData",
            (*mut u64, *const u8),
            &raw mut module,
            image.as_ptr()
        )
        .map(|()| module)
    }

    pub(crate) fn function(&self, module: u64, name: &std::ffi::CStr) -> Result<u64> {
        let mut function = 0;
        call!(
            self,
            "cuModuleGetFunction",
            (*mut u64, u64, *const c_char),
            &raw mut function,
            module,
            name.as_ptr()
        )
        .map(|()| function)
    }

    /// The function `sim_timed`.
    pub(crate) fn timed(&self) -> u64 {
        let module = self.load_module(PTX).unwrap();
        self.function(module, c"sim_timed").unwrap()
    }

    pub(crate) fn launch(&self, function: u64, cost: &Cost, stream: u64) -> Result<()> {
        let shares = [cost.sm_active, cost.sm_occupancy, cost.dram_active];
        let params: [*const c_void; 4] = [
            (&raw const cost.duration_ns).cast(),
            (&raw const shares[0]).cast(),
            (&raw const shares[1]).cast(),
            (&raw const shares[2]).cast(),
        ];
        call!(
            self,
            "cuLaunchKernel",
            (
                u64,
                u32,
                u32,
                u32,
                u32,
                u32,
                u32,
                u32,
                u64,
                *const *const c_void,
                *const c_void
            ),
            function,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            stream,
            params.as_ptr(),
            std::ptr::null()
        )
    }

    /// Times launches whose arguments are not read.
    pub(crate) fn time_launches(&self, function: u64, count: u32) -> std::time::Duration {
        type Launch = unsafe extern "C" fn(
            u64,
            u32,
            u32,
            u32,
            u32,
            u32,
            u32,
            u32,
            u64,
            *const c_void,
            *const c_void,
        ) -> i32;
        // SAFETY: the signature of cuda.h.
        let launch: Symbol<'_, Launch> = unsafe { self.library.get("cuLaunchKernel") }.unwrap();
        let start = std::time::Instant::now();
        for _ in 0..count {
            // SAFETY: with zero duration the arguments are not read.
            let code = unsafe {
                launch(
                    function,
                    1,
                    1,
                    1,
                    32,
                    1,
                    1,
                    0,
                    0,
                    std::ptr::null(),
                    std::ptr::null(),
                )
            };
            assert_eq!(code, 0);
        }
        start.elapsed()
    }

    pub(crate) fn create_stream(&self) -> Result<u64> {
        let mut stream = 0;
        call!(self, "cuStreamCreate", (*mut u64, u32), &raw mut stream, 1).map(|()| stream)
    }

    pub(crate) fn query(&self, stream: u64) -> Result<()> {
        call!(self, "cuStreamQuery", (u64), stream)
    }

    pub(crate) fn synchronise(&self) -> Result<()> {
        call!(self, "cuCtxSynchronize", (),)
    }

    pub(crate) fn create_event(&self) -> Result<u64> {
        let mut event = 0;
        call!(self, "cuEventCreate", (*mut u64, u32), &raw mut event, 0).map(|()| event)
    }

    pub(crate) fn record(&self, event: u64, stream: u64) -> Result<()> {
        call!(self, "cuEventRecord", (u64, u64), event, stream)
    }

    pub(crate) fn event_done(&self, event: u64) -> Result<()> {
        call!(self, "cuEventQuery", (u64), event)
    }

    pub(crate) fn elapsed_ms(&self, start: u64, end: u64) -> Result<f32> {
        let mut elapsed = 0.0;
        call!(
            self,
            "cuEventElapsedTime",
            (*mut f32, u64, u64),
            &raw mut elapsed,
            start,
            end
        )
        .map(|()| elapsed)
    }

    pub(crate) fn host_function(
        &self,
        stream: u64,
        function: extern "C" fn(*mut c_void),
        data: *mut c_void,
    ) -> Result<()> {
        call!(
            self,
            "cuLaunchHostFunc",
            (u64, extern "C" fn(*mut c_void), *mut c_void),
            stream,
            function,
            data
        )
    }

    pub(crate) fn begin_capture(&self, stream: u64) -> Result<()> {
        call!(self, "cuStreamBeginCapture_v2", (u64, i32), stream, 0)
    }

    pub(crate) fn end_capture(&self, stream: u64) -> Result<u64> {
        let mut graph = 0;
        call!(
            self,
            "cuStreamEndCapture",
            (u64, *mut u64),
            stream,
            &raw mut graph
        )
        .map(|()| graph)
    }

    pub(crate) fn instantiate(&self, graph: u64) -> Result<u64> {
        let mut executable = 0;
        call!(
            self,
            "cuGraphInstantiateWithFlags",
            (*mut u64, u64, u64),
            &raw mut executable,
            graph,
            0
        )
        .map(|()| executable)
    }

    pub(crate) fn launch_graph(&self, executable: u64, stream: u64) -> Result<()> {
        call!(self, "cuGraphLaunch", (u64, u64), executable, stream)
    }

    pub(crate) fn export_table(&self) -> Result<()> {
        let mut table: *const c_void = std::ptr::null();
        let id = [0u8; 16];
        call!(
            self,
            "cuGetExportTable",
            (*mut *const c_void, *const [u8; 16]),
            &raw mut table,
            &raw const id
        )
    }

    /// Address of an exported symbol.
    pub(crate) fn symbol(&self, name: &str) -> usize {
        // SAFETY: only the address is taken.
        let symbol: Symbol<'_, *const c_void> = unsafe { self.library.get(name) }.unwrap();
        // SAFETY: as above, it is not dereferenced.
        unsafe { symbol.try_as_raw_ptr() }.unwrap().addr()
    }

    /// `cuGetProcAddress_v2`: address and status.
    pub(crate) fn find(
        &self,
        name: &std::ffi::CStr,
        version: i32,
        flags: u64,
    ) -> (Result<usize>, i32) {
        let (mut address, mut status) = (1usize, -1);
        let result = call!(
            self,
            "cuGetProcAddress_v2",
            (*const c_char, *mut usize, i32, u64, *mut i32),
            name.as_ptr(),
            &raw mut address,
            version,
            flags,
            &raw mut status
        );
        assert!(result != Err(500) || address == 0);
        (result.map(|()| address), status)
    }

    /// The four-argument `cuGetProcAddress`.
    pub(crate) fn find_old(
        &self,
        name: &std::ffi::CStr,
        version: i32,
        flags: u64,
    ) -> Result<usize> {
        let mut address = 0usize;
        call!(
            self,
            "cuGetProcAddress",
            (*const c_char, *mut usize, i32, u64),
            name.as_ptr(),
            &raw mut address,
            version,
            flags
        )
        .map(|()| address)
    }
}
