"""Stops a client where the checker compares its ledger with the driver's journal.

Imported by the clients, or run with another program's name, which is held when it is about to end:

    python checkpoint.py MODULE [ARGUMENT...]
"""

import os
import runpy
import sys


def checkpoint():
    """Says that nothing will be allocated or freed, and waits until the checker has looked."""
    print(f"CHECKPOINT {os.getpid()}", flush=True)
    gate = os.environ.get("COMPAT_GATE")
    if gate:
        with open(gate) as pipe:
            pipe.read()


def refused(error, what=""):
    """Says how the library reported that there is no memory."""
    print(f"OOM {type(error).__name__} {what or error}", flush=True)


def main():
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    checkpoint()
    sys.exit(code)


if __name__ == "__main__":
    main()
