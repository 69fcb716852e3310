"""All policies under four budgets on five networks: `penstock bench` for each, interleaved and repeated.

Budgets lie between the smallest that `auto` trains in and what the network needs in memory. Prints % of in-memory
speed, `auto` against the best of the others, and the lowest budget of each policy; figures and pages go to the folder
--results. Speeds are those of the fastest step of all rounds: a policy is to be compared, not the hour of the day.
usage: policies.py PENSTOCK [--models resnet50:8,vgg16:4,densenet121:8,inception-v4:4,unet:2] [--steps 5] [--rounds 2]
                   [--parts 0.1,0.25,0.5,0.75] [--results build/bench-results]
"""
import argparse
import json
import pathlib
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
    parser.add_argument("--models", default="resnet50:8,vgg16:4,densenet121:8,inception-v4:4,unet:2")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--parts", default="0.1,0.25,0.5,0.75", help="of the way from the smallest budget to all in memory")
    parser.add_argument("--results", default="build/bench-results", type=pathlib.Path)
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    behind = 0
    lowest = []
    print("% of in-memory speed by the fastest steps; last: auto's speed over that of the best other")
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
        keep, *cells = json.loads(result.read_text())["cells"]
        in_memory = min(keep["fastest_step_seconds"])
        for row, budget in enumerate(budgets):
            of_budget = cells[len(POLICIES) * row:len(POLICIES) * (row + 1)]
            seconds = {cell["policy"]: min(cell["fastest_step_seconds"]) for cell in of_budget if cell["feasible"]}
            texts = [f"{100 * in_memory / seconds[policy]:.0f}" if policy in seconds else "cannot run" for policy in POLICIES]
            others = [value for policy, value in seconds.items() if policy != "auto"]
            ratio = min(others) / seconds["auto"] if others else None
            behind += ratio is not None and ratio < 0.98
            print(f"| {model}, batch {batch} ({whole / 2**20:.0f} MiB in memory) | {budget} | " + " | ".join(texts) +
                  f" | {'alone' if ratio is None else f'{ratio:.2f}'} |", flush=True)
        lowest.append([model, batch] + [common.smallest_mib(options.penstock, model, "--batch", batch, "--policy", policy)
                                        for policy in POLICIES])
    print(f"auto is more than 2 % behind the best other in {behind} cells\n")
    print("The lowest budget of each policy, in MiB")
    print("| network | batch | " + " | ".join(POLICIES) + " |")
    print("|---|---|" + "---|" * len(POLICIES))
    for row in lowest:
        print("| " + " | ".join(map(str, row)) + " |")


main()
