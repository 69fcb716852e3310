#!/usr/bin/env python3
"""How much of its speed training keeps beside other busy processes.

usage: beside.py PENSTOCK [OTHER ...] [--torch PYTHON] [--steps N] [--busy 0 1 2 4]

Trains ResNet-50 (96 x 96, batch 4, in memory) with each program, and with PyTorch if a Python that has it is
named, step by step in turn: first alone, then beside processes that use a core each. The table has the median of
images per second with its quartiles, and what share of the quiet speed is left.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

import versions

BATCH, SIZE = 4, 96
WORKER = pathlib.Path(__file__).resolve().parent / "peers" / "torch_worker.py"


def commands(options):
    case = f"resnet50 --batch {BATCH} --image-size {SIZE}"
    named = {program: versions.penstock_command(program, case, options.steps) for program in options.programs}
    if options.torch:
        named["PyTorch"] = [os.path.abspath(options.torch), str(WORKER), "resnet50", "--batch", str(BATCH), "--image-size",
                            str(SIZE), "--steps", str(versions.steps_to_run(options.steps)), "--threads",
                            str(len(os.sched_getaffinity(0))), "--progress"]
    return named


def beside(busy, named, steps):
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        return versions.in_turn(list(named.values()), steps)
    finally:
        for other in others:
            other.kill()
            other.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--torch", help="a Python that has PyTorch and torchvision")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--busy", type=int, nargs="*", default=[0, 1, 2, 4])
    options = parser.parse_args()
    named = commands(options)
    print("| busy processes | trained by | images/s (quartiles) | of its quiet speed |\n|---|---|---|---|")
    quiet = {}
    for busy in options.busy:
        for name, seconds in zip(named, beside(busy, named, options.steps)):
            speeds = [BATCH / second for second in seconds]
            low, middle, high = statistics.quantiles(speeds, n=4)
            quiet.setdefault(name, middle)
            print(f"| {busy} | {name} | {middle:.2f} ({low:.2f}-{high:.2f}) | {middle / quiet[name]:.0%} |", flush=True)


if __name__ == "__main__":
    main()
