"""cuda-bindings: what a reset of the primary context releases is released in the ledger too."""

from cuda.bindings import driver as cu

from checkpoint import checkpoint
from cuda_bindings_client import ok


def main():
    ok(cu.cuInit(0))
    device = ok(cu.cuDeviceGet(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(device))))
    for size in (5 << 20, 123, 4096):
        ok(cu.cuMemAlloc(size))
    ok(cu.cuMemAllocManaged(1 << 20, 1))
    ok(cu.cuMemAllocAsync(1 << 20, 0))
    ok(cu.cuDevicePrimaryCtxReset(device))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(device))))
    ok(cu.cuMemAlloc(7777))
    print("WORKS memory after a reset", flush=True)
    checkpoint()


if __name__ == "__main__":
    main()
