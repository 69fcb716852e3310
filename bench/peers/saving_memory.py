"""Penstock under a budget against what PyTorch's users do when memory runs out: ResNet-50, same batch, interleaved.

Checkpointing of every block, torch.compile with a budget for activations, hooks that save to disk what autograd keeps,
and the kernel's swap in a memory cgroup (root and a cgroup file system are needed for that one; it is left out where
they are missing). Each run is a fresh process; speeds are those of the best step after the first.

usage: saving_memory.py --penstock PENSTOCK [--batch 64] [--memory 1GiB,2GiB] [--swap-memory 2GiB] [--rounds 2] [--steps 3]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import cgroups
import contenders


def penstock(options, memory, folder):
    budget = ["--memory", memory, "--swap-dir", folder] if memory else ["--policy", "keep"]
    return contenders.run_penstock(options, "resnet50", options.batch, *budget)


def torch(options, mode, folder, **more):
    return contenders.run_torch(options, "resnet50", options.batch, mode, contenders.TUNED, "--folder", folder, **more)


def in_swap(options, folder):
    if not cgroups.can_be_made():
        return None
    with cgroups.cgroup(cgroups.bytes_of(options.swap_memory)) as group, cgroups.swap_file(folder, 12):
        try:
            return torch(options, "eager", folder, prefix=cgroups.entering(group), steps=2, timeout=options.timeout)
        except subprocess.TimeoutExpired:
            return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    contenders.add_options(parser)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--memory", default="1GiB,2GiB")
    parser.add_argument("--swap-memory", default="2GiB")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=900, help="seconds that the kernel's swap gets for two steps")
    options = parser.parse_args()
    ways = {f"Penstock, --memory {memory}": lambda folder, memory=memory: penstock(options, memory, folder)
            for memory in options.memory.split(",")}
    ways["Penstock, in memory"] = lambda folder: penstock(options, "", folder)
    ways["PyTorch, tuned allocator"] = lambda folder: torch(options, "eager", folder)
    ways["checkpoint every block"] = lambda folder: torch(options, "checkpoint", folder)
    ways["torch.compile, activation_memory_budget 0.5"] = lambda folder: torch(options, "budget", folder)
    ways["saved tensors to disk by hooks"] = lambda folder: torch(options, "hooks", folder)
    figures = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, run in ways.items():
            with tempfile.TemporaryDirectory(dir=".") as folder:
                figures[name].append(run(folder))
    swap_name = f"the kernel's swap, {options.swap_memory} cgroup"
    with tempfile.TemporaryDirectory(dir=".") as folder:
        swapped = in_swap(options, folder)
    if swapped:
        figures[swap_name] = [swapped]
    print(f"ResNet-50, batch {options.batch}, {options.threads} threads")
    print("| | images/s | peak | of tuned PyTorch's speed | of its peak |")
    print("|---|---|---|---|---|")
    speeds = {name: [contenders.images_per_second(r, options.batch) for r in results] for name, results in figures.items()}
    peaks = {name: max(r["peak_rss_bytes"] for r in results) for name, results in figures.items()}
    base = "PyTorch, tuned allocator"
    for name in figures:
        ratio = [mine / other for mine, other in zip(speeds[name], speeds[base])]
        print(f"| {name} | {statistics.median(speeds[name]):.2f} ({min(speeds[name]):.2f}-{max(speeds[name]):.2f}) | "
              f"{peaks[name] / 1e9:.2f} GB | {statistics.median(ratio):.2f} | {peaks[name] / peaks[base]:.2f} |")
    if not swapped:
        print(f"{swap_name}: not there, or no two steps within {options.timeout:.0f} s")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"images_per_second": speeds, "peak_rss_bytes": peaks}, indent=2) + "\n")


main()
