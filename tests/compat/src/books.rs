//! What a process holds, from the simulator's journal alone: the figure that the shim's ledger must
//! equal.

use std::collections::{BTreeMap, BTreeSet};

use simgpu_core::journal::Record;

/// Memory of one process as its driver calls say, in requested bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Bytes held, by the ledger's name of the kind; kinds in use only.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Highest sum of them.
    pub peak: u64,
    /// Successful allocations of device memory.
    pub allocs: u64,
    /// Allocations that the driver refused for lack of memory.
    pub driver_ooms: u64,
    /// Blocks by address or handle: kind and bytes.
    blocks: BTreeMap<u64, (&'static str, u64)>,
    physical: BTreeMap<u64, Physical>,
    /// Pools in host memory.
    host_pools: BTreeSet<u64>,
    /// Handle by mapped address.
    mappings: BTreeMap<u64, u64>,
}

/// Memory made by `cuMemCreate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Physical {
    /// 0 on the host.
    bytes: u64,
    handles: u64,
    mappings: u64,
}

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: i32 = 2;
/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const DEVICE: u64 = 1;

impl Books {
    /// Goes through the records of one process, in order.
    #[must_use]
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut books = Self::default();
        for record in records {
            books.enter(record);
        }
        books
    }

    /// Bytes held.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.kinds.values().sum()
    }

    fn enter(&mut self, record: &Record) {
        let call = base_name(&record.call);
        let kind = kind_of(call);
        if record.result != 0 {
            let refused =
                record.result == OUT_OF_MEMORY && (kind.is_some() || call == "cuMemCreate");
            self.driver_ooms += u64::from(refused);
            return;
        }
        let argument = |name| argument(&record.args, name);
        let pointer = argument("pointer").unwrap_or(0);
        let handle = argument("handle").unwrap_or(0);
        match call {
            "cuMemFree" | "cuMemFreeAsync" => self.remove(pointer),
            "cuArrayDestroy" | "cuMipmappedArrayDestroy" => {
                self.remove(argument("array").unwrap_or(0))
            }
            "cuMemCreate" => {
                let on_gpu = argument("location") == Some(DEVICE);
                let bytes = argument("bytes").filter(|_| on_gpu).unwrap_or(0);
                if on_gpu {
                    self.add("vmm", bytes);
                }
                let made = Physical {
                    bytes,
                    handles: 1,
                    mappings: 0,
                };
                self.physical.insert(handle, made);
            }
            "cuMemPoolCreate" if argument("location") != Some(DEVICE) => {
                self.host_pools.insert(argument("pool").unwrap_or(0));
            }
            "cuMemAllocFromPoolAsync"
                if argument("pool").is_some_and(|pool| self.host_pools.contains(&pool)) => {}
            "cuMemRetainAllocationHandle" => self.change(handle, |p| p.handles += 1),
            "cuMemRelease" => self.change(handle, |p| p.handles = p.handles.saturating_sub(1)),
            "cuMemMap" => {
                self.mappings.insert(pointer, handle);
                self.change(handle, |p| p.mappings += 1);
            }
            "cuMemUnmap" => {
                let end = pointer.saturating_add(argument("bytes").unwrap_or(0));
                let inside: Vec<u64> = self.mappings.range(pointer..end).map(|(a, _)| *a).collect();
                for address in inside {
                    if let Some(handle) = self.mappings.remove(&address) {
                        self.change(handle, |p| p.mappings = p.mappings.saturating_sub(1));
                    }
                }
            }
            "cuDevicePrimaryCtxReset" => self.reset(),
            _ => {
                if let (Some(kind), Some(bytes)) = (kind, argument("bytes")) {
                    let block = argument("array").unwrap_or(pointer);
                    self.blocks.insert(block, (kind, bytes));
                    self.add(kind, bytes);
                }
            }
        }
    }

    fn add(&mut self, kind: &'static str, bytes: u64) {
        self.allocs += 1;
        *self.kinds.entry(kind).or_default() += bytes;
        self.peak = self.peak.max(self.used());
    }

    fn take(&mut self, kind: &'static str, bytes: u64) {
        if let Some(held) = self.kinds.get_mut(kind) {
            *held = held.saturating_sub(bytes);
        }
        self.kinds.retain(|_, held| *held > 0);
    }

    fn remove(&mut self, block: u64) {
        if let Some((kind, bytes)) = self.blocks.remove(&block) {
            self.take(kind, bytes);
        }
    }

    fn change(&mut self, handle: u64, change: impl FnOnce(&mut Physical)) {
        let Some(physical) = self.physical.get_mut(&handle) else {
            return;
        };
        change(physical);
        let physical = *physical;
        if physical.handles == 0 && physical.mappings == 0 {
            self.physical.remove(&handle);
            self.take("vmm", physical.bytes);
        }
    }

    /// Everything that belongs to the only GPU's context goes with it.
    fn reset(&mut self) {
        for (kind, bytes) in std::mem::take(&mut self.blocks).into_values() {
            self.take(kind, bytes);
        }
    }
}

/// The name without version and per-thread suffixes.
fn base_name(call: &str) -> &str {
    let call = call
        .strip_suffix("_ptsz")
        .or_else(|| call.strip_suffix("_ptds"))
        .unwrap_or(call);
    match call.rsplit_once("_v") {
        Some((base, version)) if version.parse::<u32>().is_ok() => base,
        _ => call,
    }
}

/// What an allocating call allocates, as the ledger names it.
fn kind_of(call: &str) -> Option<&'static str> {
    Some(match call {
        "cuMemAlloc" | "cuMemAllocPitch" => "linear",
        "cuMemAllocManaged" => "managed",
        "cuMemAllocAsync" | "cuMemAllocFromPoolAsync" => "pool",
        "cuArrayCreate" | "cuArray3DCreate" | "cuMipmappedArrayCreate" => "array",
        _ => return None,
    })
}

/// A number of a record's `name=value` list, decimal or hexadecimal. The last of that name: outputs
/// come after arguments.
fn argument(list: &str, name: &str) -> Option<u64> {
    let value = list
        .split(' ')
        .rev()
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(call: &str, args: &str, result: i32) -> Record {
        Record {
            pid: 1,
            sequence: 0,
            time_ns: 0,
            call: call.to_owned(),
            args: args.to_owned(),
            result,
            free: None,
        }
    }

    fn books(calls: &[(&str, &str, i32)]) -> Books {
        let records: Vec<Record> = calls.iter().map(|(c, a, r)| record(c, a, *r)).collect();
        Books::of(&records)
    }

    #[test]
    fn allocations_count_until_they_are_freed_and_failures_never() {
        let books = books(&[
            ("cuMemAlloc_v2", "bytes=1000 pointer=0x10", 0),
            (
                "cuMemAllocPitch_v2",
                "width=3 height=2 bytes=1024 pointer=0x20",
                0,
            ),
            ("cuMemAllocAsync_ptsz", "bytes=7 pointer=0x30", 0),
            ("cuMemAllocManaged", "flags=1 bytes=4096", 2),
            ("cuMemFree_v2", "pointer=0x10", 0),
            ("cuMemFree_v2", "pointer=0x30", 0),
        ]);
        assert_eq!(books.kinds, BTreeMap::from([("linear", 1024)]));
        assert_eq!((books.peak, books.allocs, books.driver_ooms), (2031, 3, 1));
    }

    #[test]
    fn physical_memory_lives_while_it_is_referenced_or_mapped() {
        let mut calls = vec![
            ("cuMemCreate", "bytes=64 location=1 device=0 handle=0x5", 0),
            ("cuMemCreate", "bytes=64 location=2 device=0 handle=0x6", 0),
            ("cuMemMap", "pointer=0x100 bytes=64 handle=0x5", 0),
            ("cuMemRelease", "handle=0x5", 0),
        ];
        assert_eq!(
            books(&calls).used(),
            64,
            "still mapped; the host's does not count"
        );
        calls.push(("cuMemRetainAllocationHandle", "pointer=0x100 handle=0x5", 0));
        calls.push(("cuMemUnmap", "pointer=0x100 bytes=64", 0));
        assert_eq!(books(&calls).used(), 64, "still referenced");
        calls.push(("cuMemRelease", "handle=0x5", 0));
        assert_eq!(books(&calls).used(), 0);
    }

    #[test]
    fn blocks_of_a_host_pool_are_no_gpu_memory() {
        let books = books(&[
            ("cuMemPoolCreate", "location=2 pool=0xb1", 0),
            ("cuMemPoolCreate", "location=1 pool=0xb2", 0),
            (
                "cuMemAllocFromPoolAsync",
                "pool=0xb1 bytes=5 pointer=0x10",
                0,
            ),
            (
                "cuMemAllocFromPoolAsync",
                "pool=0xb2 bytes=7 pointer=0x20",
                0,
            ),
            ("cuMemFreeAsync", "pointer=0x10", 0),
        ]);
        assert_eq!((books.used(), books.peak), (7, 7));
    }

    #[test]
    fn a_reset_releases_what_belonged_to_the_context() {
        let books = books(&[
            ("cuMemAlloc_v2", "bytes=10 pointer=0x10", 0),
            ("cuDevicePrimaryCtxReset_v2", "device=0", 0),
            ("cuMemAlloc_v2", "bytes=3 pointer=0x10", 0),
        ]);
        assert_eq!((books.used(), books.peak), (3, 10));
    }
}
