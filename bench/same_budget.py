"""Larger batches under the same budget: the largest batch b0 that trains in memory within it, against multiples of b0.

Each run a fresh process. On disk they take turns step by step, b0 before each other, and each step is compared with the
one before it. The slow tier's transfers would go on between turns, so there whole runs alternate. The first step of a run
does not count.
usage: same_budget.py PENSTOCK [--model resnet50] [--memory 1GiB] [--times 3.1,7.5] [--rounds 2] [--steps 6] [--slow 200MB/s]
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import common


def largest_in_memory(options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "plan.json"
        subprocess.run([options.penstock, "plan", options.model, "--batch", "4", "--memory", options.memory, "--policy",
                        "keep", "--max-batch", "--json", str(path), "--quiet"], check=True)
        return json.loads(path.read_text())["largest_batch"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("penstock")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--times", default="3.1,7.5")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--slow", default="200MB/s", help="bandwidth of a tier in memory, for the last row")
    parser.add_argument("--policy", default="auto")
    options = parser.parse_args()
    b0 = largest_in_memory(options)
    times = [float(value) for value in options.times.split(",")]
    cases = [(factor, "disk", []) for factor in times]
    if options.slow:
        cases.append((times[-1], f"memory at {options.slow}", ["--tier", "ram", "--tier-bandwidth", options.slow]))
    shared = ["--lr", "0.01", "--memory", options.memory]
    speeds, ratios, last = [], [[] for _ in cases], [None] * len(cases)
    whole = [options.model, "--batch", b0, "--policy", "keep", *shared]
    large = [[options.model, "--batch", round(factor * b0), "--steps", options.steps, "--policy", options.policy, *shared, *more]
             for factor, _, more in cases]
    on_disk = len(times)
    for _ in range(options.rounds):
        turns = common.Turns(options.penstock)
        reference = turns.start(*whole, "--steps", on_disk * options.steps + 1)
        runs = [turns.start(*arguments) for arguments in large[:on_disk]]
        for step in range(1, options.steps):
            for run in runs:
                turns.step(reference)
                turns.step(run)
        while any([turns.step(run) for run in runs]):
            pass
        while turns.step(reference):
            pass
        b0_seconds = turns.result(reference)["step_seconds"][1:]
        speeds += [b0 / seconds for seconds in b0_seconds]
        for i in range(on_disk):
            last[i] = turns.result(runs[i])
            seconds = last[i]["step_seconds"][1:]
            batch = round(cases[i][0] * b0)
            ratios[i] += [100 * (batch / mine) / (b0 / its) for mine, its in zip(seconds, b0_seconds[i::on_disk])]
        for i in range(on_disk, len(cases)):
            before = common.train(options.penstock, *whole, "--steps", 2 * options.steps)["images_per_second"]
            last[i] = common.train(options.penstock, *large[i])
            after = common.train(options.penstock, *whole, "--steps", 2 * options.steps)["images_per_second"]
            ratios[i].append(100 * last[i]["images_per_second"] / ((before + after) / 2))
        assert all(part["peak_rss_bytes"] <= part["budget_bytes"] for part in last), "the budget did not hold"
    print(f"{options.model} within {options.memory}: b0 = {b0} in memory, {common.spread(speeds)} images/s")
    print("| batch | tier | % of b0's images/s | peak | out per step | in per step | computed again | predicted / measured |")
    print("|---|---|---|---|---|---|---|---|")
    for (factor, tier, _), ratio, part in zip(cases, ratios, last):
        batch = round(factor * b0)
        seconds = batch / part["images_per_second"]
        print(f"| {factor} b0 = {batch} | {tier} | {common.spread(ratio, 1)} | {common.mib(part['peak_rss_bytes'])} | "
              f"{common.mib(part['swapped_out_bytes'])} | {common.mib(part['swapped_in_bytes'])} | "
              f"{part['recompute_seconds']:.2f} s | {part['predicted_step_seconds'] / seconds:.2f} |", flush=True)


main()
