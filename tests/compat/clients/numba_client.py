"""numba-cuda: a compiled kernel, arrays, and numba's own way to be out of memory."""

import sys

import numpy
from numba import cuda

from checkpoint import checkpoint, refused


@cuda.jit
def add_one(values):
    index = cuda.grid(1)
    if index < values.size:
        values[index] += 1


def main():
    values = cuda.to_device(numpy.zeros(100_000, dtype=numpy.float32))
    add_one[100, 1024](values)
    cuda.synchronize()
    # Kernels are not executed on a simulated driver: the copy counts, not the numbers.
    assert values.copy_to_host().shape == (100_000,)
    try:
        cuda.device_array(2 << 30, dtype=numpy.uint8)
        sys.exit("2 GiB in a job of 1 GiB were not refused")
    except Exception as error:  # the class depends on which binding numba-cuda found
        if "OUT_OF_MEMORY" not in str(error):
            raise
        refused(error)
    kept = cuda.device_array(12_345, dtype=numpy.uint8)
    print(f"WORKS kernel, copies, {kept.size} bytes held", flush=True)
    checkpoint()


if __name__ == "__main__":
    main()
