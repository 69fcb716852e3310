#!/usr/bin/env python3
"""A long run of a small network under a budget: memory stays flat, steps stay as fast, files stay whole.

usage: long_run.py PENSTOCK [--steps N] [--case 'resnet20 --batch 16 --image-size 16'] [--memory MIB] [--every N]

Trains in a memory cgroup of the budget's size (as root; otherwise without one), by default in the smallest budget that
works, with a checkpoint every so many steps. Once a second the process's resident memory, its open files and its
threads are looked at. Then: the memory in the second and in the last tenth of the run; the median of a step in the first
and in the last tenth, and what the fastest tenth of these steps took at most, which other programs on the machine
disturb less; the last checkpoint is resumed for a hundred steps, by a run without a budget and by one with it, which
must give the same bits. The exit code is 1 where memory grew by more than 2 %, files or threads became more, the fastest
tenth became slower by more than 5 %, something is left behind or bits differ.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import campaign
import common

MIB = 1 << 20


def resident_bytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def watch(process):
    """What the process takes, once a second until it ends,."""
    samples = []
    while process.poll() is None:
        try:
            files = len(os.listdir(f"/proc/{process.pid}/fd"))
            threads = len(os.listdir(f"/proc/{process.pid}/task"))
            samples.append((resident_bytes(process.pid), files, threads))
        except (OSError, ValueError, IndexError):
            pass
        time.sleep(1)
    return samples


def tenth(values, number):
    """The values of one tenth of the run."""
    size = max(1, len(values) // 10)
    return values[number * size:(number + 1) * size] if number >= 0 else values[-size:]


def train(options, folder, *more, budget=None):
    result = folder / "result.json"
    command = [options.penstock, "train", *options.case.split(), "--seed", "1", "--lr", "0.01", "--json", str(result),
               "--swap-dir", str(folder / "swap"), *map(str, more)]
    group = None
    if budget:
        command += ["--memory", f"{budget}MiB"]
        group = campaign.Group(budget * MIB)
        command = [*group.prefix(), *command]
    process = subprocess.Popen(command, env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")})
    samples = watch(process)
    if group:
        group.close()
    if process.returncode != 0:
        raise SystemExit(f"long_run.py: exit code {process.returncode}: {' '.join(command)}")
    return json.loads(result.read_text()), samples


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("penstock", type=os.path.abspath)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--case", default="resnet20 --batch 16 --image-size 16")
    parser.add_argument("--memory", type=int, help="budget in MiB (the smallest that works)")
    parser.add_argument("--every", type=int, default=500, help="steps between two checkpoints")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "swap").mkdir()
        budget = options.memory or common.smallest_mib(options.penstock, *options.case.split())
        wrong = []
        begin = time.monotonic()
        keep = ["--checkpoint", folder / "checkpoint", "--checkpoint-every", options.every, "--quiet"]
        told, samples = train(options, folder, "--steps", options.steps, *keep, budget=budget)
        seconds = time.monotonic() - begin
        left = sorted(path.name for path in [*(folder / "swap").iterdir(), *(folder / "checkpoint").iterdir()])
        if left != ["checkpoint.safetensors"]:
            wrong.append(f"files that are there: {left}")

        memory = [sample[0] for sample in samples]
        early, late = (statistics.median(tenth(memory, number)) for number in (1, -1))
        print(f"{options.case}, {options.steps} steps in {budget} MiB, {seconds:.0f} s, policy {told['policy']}, "
              f"{told['swapped_out_bytes'] / MIB:.1f} MiB out a step, {told['replans']} plans made in mid-run")
        print(f"resident: {early / MIB:.2f} MiB in the second tenth, {late / MIB:.2f} MiB in the last, "
              f"peak {told['peak_rss_bytes'] / MIB:.2f} MiB")
        if late > 1.02 * early or told["peak_rss_bytes"] > budget * MIB:
            wrong.append("memory grew")
        for what, values in (("open files", [sample[1] for sample in samples]),
                             ("threads", [sample[2] for sample in samples])):
            # Medians: a checkpoint that is just being written is one more file.
            first, last = statistics.median(tenth(values, 1)), statistics.median(tenth(values, -1))
            print(f"{what}: {first} in the second tenth, {last} in the last")
            if last > first:
                wrong.append(f"more {what}")

        for what, share, limit in (("median", 0.5, None), ("fastest tenth", 0.1, 1.05)):
            first, last = (sorted(values)[int(share * len(values))] for values in (tenth(told["step_seconds"], 0),
                                                                                tenth(told["step_seconds"], -1)))
            print(f"a step, {what}: {1000 * first:.3f} ms in the first tenth of the run, {1000 * last:.3f} ms in the last: "
                  f"{last / first:.3f}")
            if limit and last > limit * first:
                wrong.append("steps became slower")

        more = options.steps + 100
        hashes = set()
        for limit in (None, budget):
            resumed, _ = train(options, folder, "--quiet", "--steps", more, "--resume", folder / "checkpoint", budget=limit)
            hashes.add(resumed["weights_sha256"])
        print(f"resumed for 100 steps without a budget and with it: {len(hashes)} kind of bits")
        if len(hashes) != 1:
            wrong.append("bits differ")
        for line in wrong:
            print("WRONG: " + line)
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
