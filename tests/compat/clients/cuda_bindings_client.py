"""cuda-bindings, NVIDIA's own Python binding of the driver API: every family of allocation."""

import sys

from cuda.bindings import driver as cu

from checkpoint import checkpoint, refused

MIB = 1 << 20


def ok(answer):
    """The results of a call that must succeed."""
    status, *results = answer
    if status != cu.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{status!r}")
    return results[0] if len(results) == 1 else results


def properties(device):
    made = cu.CUmemAllocationProp()
    made.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    made.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    made.location.id = int(device)
    return made


def linear():
    first = ok(cu.cuMemAlloc(1000))
    ok(cu.cuMemAlloc(3 * MIB + 1))
    pitched, pitch = ok(cu.cuMemAllocPitch(300, 10, 4))
    assert pitch >= 300, pitch
    ok(cu.cuMemsetD8(first, 7, 1000))
    back = bytearray(1000)
    ok(cu.cuMemcpyDtoH(back, first, 1000))
    assert back == b"\x07" * 1000
    ok(cu.cuMemFree(pitched))
    ok(cu.cuMemAllocManaged(5 * MIB, cu.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value))


def pools(device):
    stream = ok(cu.cuStreamCreate(0))
    ok(cu.cuMemAllocAsync(2 * MIB, stream))
    freed = ok(cu.cuMemAllocAsync(700, stream))
    ok(cu.cuMemFreeAsync(freed, stream))
    wanted = cu.CUmemPoolProps()
    wanted.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    wanted.location.id = int(device)
    pool = ok(cu.cuMemPoolCreate(wanted))
    ok(cu.cuMemAllocFromPoolAsync(4096, pool, stream))
    # Legal, and once a crash in another interposer: the synchronous free of such memory.
    ok(cu.cuMemFree(ok(cu.cuMemAllocFromPoolAsync(9 * MIB, pool, stream))))
    # Host memory: on no GPU's account, and no GPU's limit refuses it.
    wanted.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
    wanted.location.id = 0
    host = ok(cu.cuMemPoolCreate(wanted))
    ok(cu.cuMemAllocFromPoolAsync(3 << 30, host, stream))
    ok(cu.cuMemFreeAsync(ok(cu.cuMemAllocFromPoolAsync(4096, host, stream)), stream))
    ok(cu.cuStreamSynchronize(stream))


def arrays():
    flat = cu.CUDA_ARRAY_DESCRIPTOR()
    flat.Width, flat.Height, flat.NumChannels = 256, 64, 4
    flat.Format = cu.CUarray_format.CU_AD_FORMAT_FLOAT
    ok(cu.cuArrayCreate(flat))
    ok(cu.cuArrayDestroy(ok(cu.cuArrayCreate(flat))))
    solid = cu.CUDA_ARRAY3D_DESCRIPTOR()
    solid.Width, solid.Height, solid.Depth, solid.NumChannels = 64, 32, 5, 2
    solid.Format = cu.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8
    ok(cu.cuArray3DCreate(solid))
    ok(cu.cuMipmappedArrayCreate(solid, 4))
    ok(cu.cuMipmappedArrayDestroy(ok(cu.cuMipmappedArrayCreate(solid, 3))))


def virtual_memory(device):
    """Physical memory lives until it is neither referenced nor mapped."""
    wanted = properties(device)
    size = ok(
        cu.cuMemGetAllocationGranularity(
            wanted, cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        )
    )
    address = ok(cu.cuMemAddressReserve(4 * size, 0, cu.CUdeviceptr(0), 0))
    kept = ok(cu.cuMemCreate(2 * size, wanted, 0))
    ok(cu.cuMemMap(address, 2 * size, 0, kept, 0))
    ok(cu.cuMemRelease(kept))
    gone = ok(cu.cuMemCreate(size, wanted, 0))
    place = cu.CUdeviceptr(int(address) + 2 * size)
    ok(cu.cuMemMap(place, size, 0, gone, 0))
    again = ok(cu.cuMemRetainAllocationHandle(int(place)))
    ok(cu.cuMemRelease(gone))
    ok(cu.cuMemUnmap(place, size))
    ok(cu.cuMemRelease(again))
    host = properties(0)
    host.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
    ok(cu.cuMemCreate(size, host, 0))


def out_of_memory(device):
    """Every entry point refuses with the one code that callers expect."""
    for name, ask in [
        ("cuMemAlloc", lambda: cu.cuMemAlloc(2 << 30)),
        ("cuMemAllocManaged", lambda: cu.cuMemAllocManaged(2 << 30, 1)),
        ("cuMemAllocAsync", lambda: cu.cuMemAllocAsync(2 << 30, 0)),
        ("cuMemCreate", lambda: cu.cuMemCreate(2 << 30, properties(device), 0)),
        ("cuMemAllocPitch", lambda: cu.cuMemAllocPitch(1 << 20, 2048, 4)),
    ]:
        status = ask()[0]
        if status != cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            sys.exit(f"{name} of 2 GiB in a job of 1 GiB answered {status!r}")
        refused(MemoryError(name))


def main():
    ok(cu.cuInit(0))
    device = ok(cu.cuDeviceGet(0))
    context = ok(cu.cuDevicePrimaryCtxRetain(device))
    ok(cu.cuCtxSetCurrent(context))
    linear()
    pools(device)
    arrays()
    virtual_memory(device)
    out_of_memory(device)
    free, total = ok(cu.cuMemGetInfo())
    assert free <= total <= 1 << 30, (free, total)
    print("WORKS linear, pitched, managed, pools, arrays, virtual memory, streams, copies", flush=True)
    checkpoint()


if __name__ == "__main__":
    main()
