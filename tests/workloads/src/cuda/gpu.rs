//! A GPU through the driver API: primary context, one stream, the timed kernel.

use super::backend::Heap;
use super::ffi::{AllocApi, Api, Context, Function, Graph, Stream};
use super::{Backend, DriverSource};
use crate::device::{AllocError, Device, DeviceMemory, DevicePtr, MemoryInfo};
use crate::error::WorkloadError;
use crate::kernel::KernelDemand;

/// An initialised driver.
#[derive(Clone, Copy)]
pub struct Driver {
    tables: (Api, Option<AllocApi>),
    backend: Backend,
}

impl Driver {
    /// Finds the driver and initialises it (`cuInit`).
    ///
    /// # Errors
    /// [`WorkloadError::NoDriver`] or the driver's code.
    pub fn load(source: &DriverSource) -> Result<Self, WorkloadError> {
        let tables = source.tables()?;
        tables.0.initialise()?;
        Ok(Self {
            tables,
            backend: source.backend,
        })
    }
}

/// A GPU in use. Its context lives as long as the process, as a framework's does.
pub struct Gpu {
    api: Api,
    heap: Heap,
    ordinal: u32,
    multiprocessors: u32,
    context: Context,
    stream: Stream,
    kernel: Function,
}

impl Gpu {
    /// Opens the `ordinal`-th visible GPU.
    ///
    /// # Errors
    /// [`WorkloadError::BadParameter`] if there are not so many, else the driver's code.
    pub fn open(driver: &Driver, ordinal: u32) -> Result<Self, WorkloadError> {
        let api = driver.tables.0;
        let count = api.count()?;
        if ordinal >= count {
            return Err(WorkloadError::bad(
                "gpus",
                format!("GPU {ordinal} is wanted, but {count} are visible to this process"),
            ));
        }
        let device = api.device(ordinal)?;
        let multiprocessors = api.multiprocessors(device)?;
        let context = api.retain_primary(device)?;
        api.set_current(context)?;
        let stream = api.stream()?;
        Ok(Self {
            api,
            heap: Heap::new(driver.backend, driver.tables, device, stream),
            ordinal,
            multiprocessors,
            context,
            stream,
            kernel: api.timed_kernel()?,
        })
    }

    /// What `work` launches here, as a graph.
    ///
    /// # Errors
    /// Those of `work`, or the driver's code.
    pub fn record(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), WorkloadError>,
    ) -> Result<Graph, WorkloadError> {
        let (api, stream) = (*self.here()?, self.stream);
        api.capture(stream, || work(self))
    }

    /// Launches a recorded graph.
    ///
    /// # Errors
    /// The driver's code.
    pub fn replay(&mut self, graph: Graph) -> Result<(), WorkloadError> {
        self.here()?.launch_graph(graph, self.stream)
    }

    /// Makes this GPU's context current: a process with several switches at each call.
    fn here(&self) -> Result<&Api, WorkloadError> {
        self.api.set_current(self.context)?;
        Ok(&self.api)
    }
}

impl DeviceMemory for Gpu {
    fn ordinal(&self) -> u32 {
        self.ordinal
    }

    fn alloc(&mut self, bytes: u64) -> Result<DevicePtr, AllocError> {
        self.here().map_err(AllocError::Other)?;
        match self.heap.alloc(bytes) {
            Ok(address) => Ok(DevicePtr(address)),
            Err(WorkloadError::NoMemory { .. }) => Err(AllocError::OutOfMemory),
            Err(error) => Err(AllocError::Other(error)),
        }
    }

    fn free(&mut self, ptr: DevicePtr) -> Result<(), WorkloadError> {
        self.here()?;
        self.heap.free(ptr.0)
    }

    fn info(&self) -> Result<MemoryInfo, WorkloadError> {
        let (free, total) = self.here()?.memory()?;
        Ok(MemoryInfo { free, total })
    }
}

impl Device for Gpu {
    fn launch(&mut self, demand: &KernelDemand) -> Result<(), WorkloadError> {
        let grid = demand.grid(self.multiprocessors);
        self.here()?.launch(self.kernel, grid, self.stream, demand)
    }

    fn synchronize(&mut self) -> Result<(), WorkloadError> {
        self.here()?.wait(self.stream)
    }

    fn upload(&mut self, dst: DevicePtr, data: &[u8]) -> Result<(), WorkloadError> {
        self.here()?.upload(dst.0, data, self.stream)
    }

    fn download(&mut self, src: DevicePtr, into: &mut [u8]) -> Result<(), WorkloadError> {
        self.here()?.download(src.0, into)
    }
}
