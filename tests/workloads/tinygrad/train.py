#!/usr/bin/env python3
"""Trains a small MLP with tinygrad, a real framework that nobody wrote for these tests.

The data are synthetic, so nothing is downloaded. On a simulated driver kernels are not executed and
the loss means nothing; the steps, copies and allocations are real.

    python3 -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python train.py --steps 100 --progress /tmp/progress.jsonl
    venv/bin/python train.py --optimizer sgd --width 4096 --no-jit
"""

import argparse
import json
import os
import sys
import time

# Read once, when tinygrad is imported. PTX needs the driver only, no NVIDIA compiler package.
os.environ.setdefault("DEV", "CUDA:PTX")
# Kernels are compiled in each run, as on a user's first: no state outside the job.
os.environ.setdefault("CACHELEVEL", "0")
# Optimised kernels, their verification and a pool of compiler processes take longer than the whole
# training of so small a model. NOOPT=0, SPEC=1, PARALLEL=2 in the environment turn them on.
for variable, value in [("NOOPT", "1"), ("SPEC", "0"), ("PARALLEL", "0")]:
    os.environ.setdefault(variable, value)

KIND = "tinygrad"


class Progress:
    """The JSON lines that the other workloads write too (see src/progress.rs)."""

    def __init__(self, path, steps_total):
        self.steps_total = steps_total
        self.steps_done = 0
        # O_APPEND, unbuffered: one write per line.
        self.file = open(path, "ab", buffering=0) if path else None

    def record(self, event, step):
        self.steps_done = step
        if self.file is None:
            return
        line = {
            "kind": KIND,
            "pid": os.getpid(),
            "attempt": os.environ.get("AEGIS_ATTEMPT", ""),
            "rank": 0,
            "step": step,
            "steps_total": self.steps_total,
            "t_ns": time.monotonic_ns(),
            "event": event,
        }
        self.file.write((json.dumps(line) + "\n").encode())


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def parse_args():
    parser = argparse.ArgumentParser(description="Train a small MLP on synthetic data with tinygrad.")
    parser.add_argument("--steps", type=positive, default=100, help="training steps (default %(default)s)")
    parser.add_argument("--progress", metavar="FILE", help="append events to FILE as JSON lines")
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="adam", help="default %(default)s")
    parser.add_argument("--width", type=positive, default=1024, help="hidden width (default %(default)s)")
    parser.add_argument("--hidden", type=positive, default=1, help="hidden layers (default %(default)s)")
    parser.add_argument("--batch", type=positive, default=256, help="samples per step (default %(default)s)")
    parser.add_argument("--step-ms", type=float, default=0.0, help="data loader's delay before each step")
    parser.add_argument("--no-jit", action="store_true", help="launch each kernel singly, without a CUDA graph")
    return parser.parse_args()


def train(args, progress):
    """Runs the training loop; returns the number of steps done."""
    from tinygrad import Context, Device, Tensor, TinyJit, nn

    class Mlp:
        def __init__(self, width, hidden):
            sizes = [784] + [width] * hidden + [10]
            self.layers = [nn.Linear(fan_in, fan_out) for fan_in, fan_out in zip(sizes, sizes[1:])]

        def __call__(self, x):
            for layer in self.layers[:-1]:
                x = layer(x).relu()
            return self.layers[-1](x)

    print(f"tinygrad on {Device.DEFAULT}, MLP {args.hidden} x {args.width}, {args.optimizer}", flush=True)
    model = Mlp(args.width, args.hidden)
    make = nn.optim.Adam if args.optimizer == "adam" else nn.optim.SGD
    optimizer = make(nn.state.get_parameters(model), lr=0.001)

    def step(images, labels):
        optimizer.zero_grad()
        loss = model(images).sparse_categorical_crossentropy(labels).backward()
        return loss.realize(*optimizer.schedule_step())

    run = step if args.no_jit else TinyJit(step)
    samples = [os.urandom(args.batch * 784) for _ in range(4)]
    classes = [bytes(byte % 10 for byte in os.urandom(args.batch)) for _ in range(4)]
    for number in range(1, args.steps + 1):
        time.sleep(args.step_ms / 1000)
        images, labels = to_gpu(Tensor, samples[number % 4], classes[number % 4], args.batch)
        if number == 1:
            # The batch's cast is the first kernel: weights are made when they are first needed.
            progress.record("first_launch", 0)
        with Context(TRAINING=1):
            loss = run(images, labels)
        value = loss.item()
        progress.record("step", number)
        if number % max(1, args.steps // 10) == 0:
            print(f"step {number}/{args.steps} loss {value:.2f}", flush=True)
    return args.steps


def to_gpu(Tensor, samples, classes, batch):
    """Copies one batch to the GPU."""
    from tinygrad import dtypes

    images = Tensor(samples, dtype=dtypes.uint8).reshape(batch, 784).cast(dtypes.float32) / 255.0
    labels = Tensor(classes, dtype=dtypes.uint8).cast(dtypes.int32)
    return images.contiguous().realize(), labels.contiguous().realize()


def main():
    args = parse_args()
    progress = Progress(args.progress, args.steps)
    progress.record("start", 0)
    try:
        done = train(args, progress)
    except (MemoryError, RuntimeError) as error:
        # tinygrad has freed its cache and tried again. It reports any failed allocation as a
        # MemoryError caused by the driver's error.
        if "CUDA Error 2," in f"{error} {error.__cause__}":
            progress.record("oom", progress.steps_done)
        raise
    progress.record("done", done)
    print("done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
