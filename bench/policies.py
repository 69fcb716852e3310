"""All policies under four budgets on five networks: `penstock bench` for each, interleaved and repeated.

Budgets lie between the smallest that `auto` trains in and what the network needs in memory. Prints % of in-memory
speed, `auto` against the best of the others, and the lowest budget of each policy; figures and pages go to the folder
--results. All runs of a budget, and everything in memory, take turns step by step: a policy is to be compared, not the
hour of the day. What counts is the mean of a run's fastest third: other programs make steps slower and never faster.
The first step of each run does not count.
usage: policies.py PENSTOCK [--models resnet50:8,vgg16:4,densenet121:8,inception-v4:4,unet:2] [--steps 12] [--rounds 2]
                   [--parts 0.1,0.25,0.5,0.75] [--results build/bench-results]
"""
import argparse
import json
import pathlib
import statistics
import subprocess

import common

POLICIES = ["auto", "pooch", "superneurons", "window", "lms"]


def planned(penstock, model, batch, folder):
    path = folder / "plan.json"
    subprocess.run([penstock, "plan", model, "--batch", batch, "--quiet", "--json", str(path)], check=True)
    return json.loads(path.read_text())


def later_steps(runs):
    return [seconds for run in runs for seconds in run[1:]]


def ratio(these, those):
    """How much faster those are."""
    return fastest(these) / fastest(those)


def fastest(seconds):
    return statistics.mean(sorted(seconds)[:max(1, len(seconds) // 3)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("penstock")
    parser.add_argument("--models", default="resnet50:8,vgg16:4,densenet121:8,inception-v4:4,unet:2")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--parts", default="0.1,0.25,0.5,0.75", help="of the way from the smallest budget to all in memory")
    parser.add_argument("--results", default="build/bench-results", type=pathlib.Path)
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    behind = 0
    lowest = []
    print("% of in-memory speed; last: auto's speed over that of the best other")
    print("| network | budget | " + " | ".join(POLICIES) + " | auto / best other |")
    print("|---|---|" + "---|" * len(POLICIES) + "---|")
    for model, batch in (case.split(":") for case in options.models.split(",")):
        plan = planned(options.penstock, model, batch, options.results)
        smallest, whole = plan["smallest_bytes"], plan["in_memory_bytes"]
        budgets = [f"{int(smallest + float(part) * (whole - smallest)) // 2**20}MiB" for part in options.parts.split(",")]
        result = options.results / f"{model}.json"
        subprocess.run([options.penstock, "bench", model, "--batch", batch, "--budgets", ",".join(budgets), "--policies",
                        ",".join(POLICIES), "--turns", "step", "--steps", str(options.steps), "--repeat", str(options.rounds), "--lr", "0.01",
                        "--json", str(result), "--report", str(result.with_suffix(".html"))], check=True,
                       stdout=subprocess.DEVNULL)
        keep, *cells = json.loads(result.read_text())["cells"]
        for row, budget in enumerate(budgets):
            of_budget = cells[len(POLICIES) * row:len(POLICIES) * (row + 1)]
            seconds = {cell["policy"]: later_steps(cell["step_seconds"]) for cell in of_budget if cell["feasible"]}
            in_memory = later_steps(keep["step_seconds"][row::len(budgets)])
            texts = [f"{100 * ratio(in_memory, seconds[policy]):.1f}" if policy in seconds else "cannot run" for policy in POLICIES]
            others = [ratio(values, seconds["auto"]) for policy, values in seconds.items() if policy != "auto"]
            behind += bool(others) and min(others) < 0.98
            print(f"| {model}, batch {batch} ({whole / 2**20:.0f} MiB in memory) | {budget} | " + " | ".join(texts) +
                  f" | {f'{min(others):.3f}' if others else 'alone'} |", flush=True)
        lowest.append([model, batch] + [common.smallest_mib(options.penstock, model, "--batch", batch, "--policy", policy)
                                        for policy in POLICIES])
    print(f"auto is more than 2 % behind the best other in {behind} cells\n")
    print("The lowest budget of each policy, in MiB")
    print("| network | batch | " + " | ".join(POLICIES) + " |")
    print("|---|---|" + "---|" * len(POLICIES))
    for row in lowest:
        print("| " + " | ".join(map(str, row)) + " |")


main()
