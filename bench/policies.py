"""All policies under four budgets on five networks: `penstock bench` for each, interleaved and repeated.

Budgets lie between the smallest that `auto` trains in and what the network needs in memory. Prints % of in-memory
speed, `auto` against the best of the others in the same round, and the lowest budget of each policy; figures and pages
go to the folder --results.
usage: policies.py PENSTOCK [--models resnet50:16,vgg16:8,densenet121:16,inception-v4:8,unet:4] [--steps 3] [--rounds 2]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("penstock")
    parser.add_argument("--models", default="resnet50:16,vgg16:8,densenet121:16,inception-v4:8,unet:4")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--parts", default="0.1,0.25,0.5,0.75", help="of the way from the smallest budget to all in memory")
    parser.add_argument("--results", default="build/bench-results", type=pathlib.Path)
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    behind = 0
    lowest = []
    print("% of in-memory speed (least and largest of the rounds); last: auto's images/s over those of the best other")
    print("| network | budget | " + " | ".join(POLICIES) + " | auto / best other |")
    print("|---|---|" + "---|" * len(POLICIES) + "---|")
    for model, batch in (case.split(":") for case in options.models.split(",")):
        plan = planned(options.penstock, model, batch, options.results)
        smallest, whole = plan["smallest_bytes"], plan["in_memory_bytes"]
        budgets = [f"{int(smallest + float(part) * (whole - smallest)) // 2**20}MiB" for part in options.parts.split(",")]
        result = options.results / f"{model}.json"
        subprocess.run([options.penstock, "bench", model, "--batch", batch, "--budgets", ",".join(budgets), "--policies",
                        ",".join(POLICIES), "--steps", str(options.steps), "--repeat", str(options.rounds), "--lr", "0.01",
                        "--json", str(result), "--report", str(result.with_suffix(".html"))], check=True,
                       stdout=subprocess.DEVNULL)
        cells = json.loads(result.read_text())["cells"][1:]
        for row in range(len(budgets)):
            of_budget = {cell["policy"]: cell for cell in cells[len(POLICIES) * row:len(POLICIES) * (row + 1)]}
            speeds = {policy: cell["images_per_second"] for policy, cell in of_budget.items() if cell["feasible"]}
            texts = [common.spread([100 * share for share in of_budget[policy]["share_of_in_memory"]], 0)
                     if policy in speeds else "cannot run" for policy in POLICIES]
            others = [values for policy, values in speeds.items() if policy != "auto"]
            ratios = [own / max(values[i] for values in others) for i, own in enumerate(speeds["auto"])] if others else []
            behind += bool(ratios) and statistics.median(ratios) < 0.98
            print(f"| {model}, batch {batch} ({whole / 2**20:.0f} MiB in memory) | {budgets[row]} | " + " | ".join(texts) +
                  f" | {common.spread(ratios) if ratios else 'alone'} |", flush=True)
        lowest.append([model, batch] + [common.smallest_mib(options.penstock, model, "--batch", batch, "--policy", policy)
                                        for policy in POLICIES])
    print(f"auto is more than 2 % behind the best other in {behind} cells\n")
    print("The lowest budget of each policy, in MiB")
    print("| network | batch | " + " | ".join(POLICIES) + " |")
    print("|---|---|" + "---|" * len(POLICIES))
    for row in lowest:
        print("| " + " | ".join(map(str, row)) + " |")


main()
