//! Device attributes: what an A100 says, as far as clients ask (values of `CUdevice_attribute`).

use simgpu_core::GpuConfig;

/// The value of an attribute; `None` for one that does not exist.
pub(super) fn value_of(attribute: i32, config: &GpuConfig, gpu: usize) -> Option<i32> {
    let (major, minor) = config.compute_capability;
    Some(match attribute {
        1 => 1024,            // MAX_THREADS_PER_BLOCK
        2 | 3 => 1024,        // MAX_BLOCK_DIM_X, _Y
        4 => 64,              // MAX_BLOCK_DIM_Z
        5 => i32::MAX,        // MAX_GRID_DIM_X
        6 | 7 => 65535,       // MAX_GRID_DIM_Y, _Z
        8 => 48 << 10,        // MAX_SHARED_MEMORY_PER_BLOCK
        9 => 64 << 10,        // TOTAL_CONSTANT_MEMORY
        10 => 32,             // WARP_SIZE
        11 => i32::MAX,       // MAX_PITCH
        12 => 65536,          // MAX_REGISTERS_PER_BLOCK
        13 => 1_410_000,      // CLOCK_RATE, kHz
        14 => 512,            // TEXTURE_ALIGNMENT
        15 => 1,              // GPU_OVERLAP
        16 => 108,            // MULTIPROCESSOR_COUNT
        18 => 0,              // INTEGRATED
        19 => 1,              // CAN_MAP_HOST_MEMORY
        20 => 0,              // COMPUTE_MODE: default
        21..=30 => 65536,     // texture limits
        31 => 1,              // CONCURRENT_KERNELS
        32 => 1,              // ECC_ENABLED
        33 => gpu as i32 + 1, // PCI_BUS_ID
        34 => 0,              // PCI_DEVICE_ID
        36 => 1_215_000,      // MEMORY_CLOCK_RATE, kHz
        37 => 5120,           // GLOBAL_MEMORY_BUS_WIDTH, bits
        38 => 40 << 20,       // L2_CACHE_SIZE
        39 => 2048,           // MAX_THREADS_PER_MULTIPROCESSOR
        40 => 3,              // ASYNC_ENGINE_COUNT
        41 => 1,              // UNIFIED_ADDRESSING
        50 => 0,              // PCI_DOMAIN_ID
        75 => major as i32,   // COMPUTE_CAPABILITY_MAJOR
        76 => minor as i32,   // COMPUTE_CAPABILITY_MINOR
        78..=80 => 1,         // STREAM_PRIORITIES, GLOBAL_L1, LOCAL_L1
        81 => 164 << 10,      // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
        82 => 65536,          // MAX_REGISTERS_PER_MULTIPROCESSOR
        83 => 1,              // MANAGED_MEMORY
        86 => 0,              // HOST_NATIVE_ATOMIC_SUPPORTED
        87 => 2,              // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
        // PAGEABLE_MEMORY_ACCESS no, CONCURRENT_MANAGED_ACCESS yes, COMPUTE_PREEMPTION yes
        88 => 0,
        89..=91 => 1,
        95 => 1,            // COOPERATIVE_LAUNCH
        97 => 163 << 10,    // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        99 => 1,            // HOST_REGISTER_SUPPORTED
        102 => 1,           // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        106 => 32,          // MAX_BLOCKS_PER_MULTIPROCESSOR
        108 => 40 << 20,    // MAX_PERSISTING_L2_CACHE_SIZE
        109 => 134_213_632, // MAX_ACCESS_POLICY_WINDOW_SIZE
        111 => 1 << 10,     // RESERVED_SHARED_MEMORY_PER_BLOCK
        115 => 1,           // MEMORY_POOLS_SUPPORTED
        // Everything else up to the newest known attribute: a feature this GPU does not have.
        17 | 35 | 42..=142 => 0,
        _ => return None,
    })
}
