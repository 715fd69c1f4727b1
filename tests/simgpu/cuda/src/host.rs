//! Host memory that the driver hands out, and host functions in streams.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use crate::code::{Code, Result};
use crate::driver::{Driver, lock};
use crate::stream::{HOST_FUNCTIONS, Stream};
use crate::sys;

/// A host function.
pub(crate) type HostFunction = extern "C" fn(*mut c_void);

#[derive(Debug, Clone, Copy)]
struct HostRange {
    bytes: u64,
    owned: bool,
    flags: u32,
}

#[derive(Default)]
pub(crate) struct HostMemory {
    ranges: BTreeMap<u64, HostRange>,
}

impl HostMemory {
    /// Flags of the allocated or registered range around an address.
    pub(crate) fn flags(&self, address: u64) -> Option<u32> {
        let (base, range) = self.ranges.range(..=address).next_back()?;
        (address - base < range.bytes).then_some(range.flags)
    }
}

pub(crate) fn allocate(driver: &Driver, bytes: usize, flags: u32) -> Result<u64> {
    if bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let address = sys::allocate_host(bytes);
    if address == 0 {
        return Err(Code::OUT_OF_MEMORY);
    }
    lock(&driver.host).ranges.insert(
        address,
        HostRange {
            bytes: bytes as u64,
            owned: true,
            flags,
        },
    );
    Ok(address)
}

pub(crate) fn free(driver: &Driver, address: u64) -> Result<()> {
    let mut host = lock(&driver.host);
    let range = host
        .ranges
        .get(&address)
        .filter(|r| r.owned)
        .copied()
        .ok_or(Code::INVALID_VALUE)?;
    host.ranges.remove(&address);
    sys::unmap(address, range.bytes.next_multiple_of(4096));
    Ok(())
}

pub(crate) fn register(driver: &Driver, address: u64, bytes: usize, flags: u32) -> Result<()> {
    let mut host = lock(&driver.host);
    if address == 0 || bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    if host.flags(address).is_some() {
        return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
    }
    host.ranges.insert(
        address,
        HostRange {
            bytes: bytes as u64,
            owned: false,
            flags,
        },
    );
    Ok(())
}

pub(crate) fn unregister(driver: &Driver, address: u64) -> Result<()> {
    let mut host = lock(&driver.host);
    host.ranges
        .get(&address)
        .filter(|r| !r.owned)
        .ok_or(Code::HOST_MEMORY_NOT_REGISTERED)?;
    host.ranges.remove(&address);
    Ok(())
}

struct Job {
    driver: &'static Driver,
    stream: &'static Stream,
    position: u64,
    function: HostFunction,
    data: usize,
}

static WORKER: OnceLock<Mutex<Option<Sender<Job>>>> = OnceLock::new();
static RETURNED: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// Runs `function` after the work now in the stream, on a thread of the driver.
pub(crate) fn launch(
    driver: &'static Driver,
    stream: &'static Stream,
    function: HostFunction,
    data: usize,
) -> Result<()> {
    let worker = WORKER.get_or_init(|| Mutex::new(start()));
    let worker = lock(worker);
    let sender = worker.as_ref().ok_or(Code::UNKNOWN)?;
    let position = stream.tail.load(Acquire);
    HOST_FUNCTIONS.fetch_add(1, Release);
    stream.host_functions.fetch_add(1, Release);
    sender
        .send(Job {
            driver,
            stream,
            position,
            function,
            data,
        })
        .map_err(|_| Code::UNKNOWN)
}

fn start() -> Option<Sender<Job>> {
    let (sender, receiver) = mpsc::channel::<Job>();
    let run = move || {
        for job in receiver {
            if !job.driver.zero {
                job.driver.process.wait(job.stream.gpu(), job.position);
            }
            sys::call_host(job.function, job.data);
            let guard = lock(&RETURNED.0);
            job.stream.host_functions.fetch_sub(1, Release);
            HOST_FUNCTIONS.fetch_sub(1, Release);
            drop(guard);
            RETURNED.1.notify_all();
        }
    };
    let thread = std::thread::Builder::new()
        .name("simgpu-host-fn".to_owned())
        .spawn(run);
    thread.ok().map(|_| sender)
}

/// Waits until host functions have returned.
pub(crate) fn wait_for(done: impl Fn() -> bool) {
    if done() {
        return;
    }
    let mut guard = lock(&RETURNED.0);
    while !done() {
        guard = RETURNED
            .1
            .wait(guard)
            .unwrap_or_else(PoisonError::into_inner);
    }
}
