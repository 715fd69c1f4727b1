"""nvidia-ml-py and cuda-bindings in one process: both views of memory tell the same story."""

import os

import pynvml
from cuda.bindings import driver as cu

from checkpoint import checkpoint
from cuda_bindings_client import ok

HELD = 100 << 20


def main():
    ok(cu.cuInit(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(0))))))
    ok(cu.cuMemAlloc(HELD))
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetName(device)
    _, total = ok(cu.cuMemGetInfo())
    # The second structure counts what the driver keeps for itself on its own.
    for memory in (
        pynvml.nvmlDeviceGetMemoryInfo(device),
        pynvml.nvmlDeviceGetMemoryInfo(device, version=pynvml.nvmlMemory_v2),
    ):
        assert memory.total == total == 1 << 30, (memory.total, total)
        assert memory.used >= HELD and memory.used + memory.free <= memory.total, memory
    listed = {p.pid: p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(device)}
    assert listed[os.getpid()] >= HELD, listed
    pynvml.nvmlDeviceGetUtilizationRates(device)
    pynvml.nvmlSystemGetDriverVersion()
    pynvml.nvmlShutdown()
    print("WORKS memory, processes, utilisation", flush=True)
    checkpoint()


if __name__ == "__main__":
    main()
