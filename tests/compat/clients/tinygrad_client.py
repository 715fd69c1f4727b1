"""tinygrad: trains with the script of the other tests, runs out of memory, recovers, holds a tensor."""

import pathlib
import runpy
import sys

from checkpoint import checkpoint, refused

SCRIPT = pathlib.Path(__file__).parents[2] / "workloads/tinygrad/train.py"

sys.argv = [str(SCRIPT), "--steps", "3", "--width", "256"]
try:
    runpy.run_path(str(SCRIPT), run_name="__main__")
except SystemExit as end:
    if end.code:
        raise

from tinygrad import Tensor, dtypes  # noqa: E402  the script chooses the device first

try:
    Tensor.zeros(2 << 30, dtype=dtypes.uint8).contiguous().realize()
    sys.exit("2 GiB in a job of 1 GiB were not refused")
except (MemoryError, RuntimeError) as error:
    refused(error)
kept = Tensor.zeros(3 << 20, dtype=dtypes.uint8).contiguous().realize()
print("WORKS trained, and again after being out of memory", flush=True)
checkpoint()
