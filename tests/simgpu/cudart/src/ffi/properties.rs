//! `cudaDeviceProp`: where each figure stands, in the structure of CUDA 12 and in that of 13.

use std::ffi::c_int;

use super::status::version;
use super::{Out, Place};
use crate::error::{Error, Result, ok};
use crate::runtime;

/// A figure: `CUdevice_attribute`, offset in CUDA 12's structure and in 13's, 8 bytes wide.
type Figure = (c_int, Option<usize>, Option<usize>, bool);

const fn both(attribute: c_int, twelve: usize, thirteen: usize) -> Figure {
    (attribute, Some(twelve), Some(thirteen), false)
}

const fn wide(attribute: c_int, twelve: usize, thirteen: usize) -> Figure {
    (attribute, Some(twelve), Some(thirteen), true)
}

/// Gone in 13.
const fn twelve(attribute: c_int, offset: usize) -> Figure {
    (attribute, Some(offset), None, false)
}

/// Texture and surface limits are left 0: nothing here has textures.
const FIGURES: &[Figure] = &[
    wide(8, 296, 296),  // sharedMemPerBlock
    both(12, 304, 304), // regsPerBlock
    both(10, 308, 308), // warpSize
    wide(11, 312, 312), // memPitch
    both(1, 320, 320),  // maxThreadsPerBlock
    both(2, 324, 324),  // maxThreadsDim
    both(3, 328, 328),
    both(4, 332, 332),
    both(5, 336, 336), // maxGridSize
    both(6, 340, 340),
    both(7, 344, 344),
    twelve(13, 348),     // clockRate
    wide(9, 352, 352),   // totalConstMem
    both(75, 360, 360),  // major
    both(76, 364, 364),  // minor
    wide(14, 368, 368),  // textureAlignment
    wide(51, 376, 376),  // texturePitchAlignment
    twelve(15, 384),     // deviceOverlap
    both(16, 388, 384),  // multiProcessorCount
    twelve(17, 392),     // kernelExecTimeoutEnabled
    both(18, 396, 388),  // integrated
    both(19, 400, 392),  // canMapHostMemory
    twelve(20, 404),     // computeMode
    both(31, 576, 560),  // concurrentKernels
    both(32, 580, 564),  // ECCEnabled
    both(33, 584, 568),  // pciBusID
    both(34, 588, 572),  // pciDeviceID
    both(50, 592, 576),  // pciDomainID
    both(35, 596, 580),  // tccDriver
    both(40, 600, 584),  // asyncEngineCount
    both(41, 604, 588),  // unifiedAddressing
    twelve(36, 608),     // memoryClockRate
    both(37, 612, 592),  // memoryBusWidth
    both(38, 616, 596),  // l2CacheSize
    both(108, 620, 600), // persistingL2CacheMaxSize
    both(39, 624, 604),  // maxThreadsPerMultiProcessor
    both(78, 628, 608),  // streamPrioritiesSupported
    both(79, 632, 612),  // globalL1CacheSupported
    both(80, 636, 616),  // localL1CacheSupported
    wide(81, 640, 624),  // sharedMemPerMultiprocessor
    both(82, 648, 632),  // regsPerMultiprocessor
    both(83, 652, 636),  // managedMemory
    both(84, 656, 640),  // isMultiGpuBoard
    both(85, 660, 644),  // multiGpuBoardGroupID
    both(86, 664, 648),  // hostNativeAtomicSupported
    twelve(87, 668),     // singleToDoublePrecisionPerfRatio
    both(88, 672, 652),  // pageableMemoryAccess
    both(89, 676, 656),  // concurrentManagedAccess
    both(90, 680, 660),  // computePreemptionSupported
    both(91, 684, 664),  // canUseHostPointerForRegisteredMem
    both(95, 688, 668),  // cooperativeLaunch
    twelve(96, 692),     // cooperativeMultiDeviceLaunch
    wide(97, 696, 672),  // sharedMemPerBlockOptin
    both(100, 704, 680), // pageableMemoryAccessUsesHostPageTables
    both(101, 708, 684), // directManagedMemAccessFromHost
    both(106, 712, 688), // maxBlocksPerMultiProcessor
    both(109, 716, 692), // accessPolicyMaxWindowSize
    wide(111, 720, 696), // reservedSharedMemPerBlock
    both(99, 728, 704),  // hostRegisterSupported
    both(115, 744, 720), // memoryPoolsSupported
    both(119, 760, 736), // memoryPoolSupportedHandleTypes
    both(120, 772, 748), // clusterLaunch
];

const NAME_BYTES: usize = 256;
const UUID: usize = 256;
const TOTAL_MEMORY: usize = 288;

/// Fills a structure of `BYTES` bytes.
fn fill<const BYTES: usize>(
    result: Out<[u8; BYTES]>,
    device: c_int,
    offset: impl Fn(&Figure) -> Option<usize>,
) -> Result<()> {
    let driver = runtime::driver()?;
    let mut properties = [0u8; BYTES];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = properties.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    let mut name = [0u8; NAME_BYTES];
    let place: Place = (&raw mut name).cast();
    ok((driver.device_get_name)(place, NAME_BYTES as c_int, device))?;
    put(0, &name);
    let mut uuid = [0u8; 16];
    ok((driver.device_get_uuid)((&raw mut uuid).cast(), device))?;
    put(UUID, &uuid);
    let mut memory = 0usize;
    ok((driver.device_total_mem)((&raw mut memory).cast(), device))?;
    put(TOTAL_MEMORY, &memory.to_ne_bytes());
    for figure in FIGURES {
        let (attribute, _, _, is_wide) = figure;
        let Some(at) = offset(figure) else { continue };
        let mut value: c_int = 0;
        ok((driver.device_get_attribute)(
            (&raw mut value).cast(),
            *attribute,
            device,
        ))?;
        if *is_wide {
            put(at, &i64::from(value).to_ne_bytes());
        } else {
            put(at, &value.to_ne_bytes());
        }
    }
    result.set(properties)
}

api! {
    bare fn cudaGetDeviceProperties_v2(result: Out<[u8; 1032]>, device: c_int) {
        fill(result, device, |(_, twelve, _, _)| *twelve)
    }

    bare fn cudaGetDeviceProperties(result: Out<[u8; 1008]>, device: c_int) {
        // Before 13.0 the structure of CUDA 11, which no header of 12 asks for.
        if version() < 13000 {
            return Err(Error::NOT_SUPPORTED);
        }
        fill(result, device, |(_, _, thirteen, _)| *thirteen)
    }
}
