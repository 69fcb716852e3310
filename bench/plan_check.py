"""Whether `penstock plan` says what `penstock train` does: random models, batches and budgets.

For each triple: the plan says that it is feasible if and only if training runs, the planned peak is the measured
peak of the pool, and the predicted time of a step is within 15 % of the measured one. A profile is measured; then, in
turn and several times, the network is trained for a few steps, which betters the profile, planned from that, and
trained by the plan. The fastest prediction is compared with the fastest step: what others take from a shared machine,
for seconds at a time, is not the plan's. Where the two are apart after --rounds, it goes on up to --most-rounds: an
error of the prediction stays, a slow phase of the machine does not.

usage: plan_check.py PENSTOCK [--cases 30] [--seed 0] [--rounds 2] [--most-rounds 6] [--steps 8] [--tolerance 15]
"""
import argparse
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import common

# Model, edges of the images, batches: steps of 0.2 to 2 s. Shorter ones are shorter than this machine's moods.
MODELS = [("resnet20", (32,), (192, 256, 384)),
          ("resnet18", (96, 128, 160), (8, 16)),
          ("resnet50", (96, 128, 160), (8, 12)),
          ("vgg16", (64, 96), (8, 12)),
          ("densenet121", (96, 128), (8, 16)),
          ("unet", (96, 128), (1, 2)),
          ("alexnet", (128, 160), (32, 64))]


def run(penstock, command, arguments, folder):
    """The JSON of a run, or None where it is refused; whatever else goes wrong is an error."""
    path = pathlib.Path(folder) / f"{command}.json"
    path.unlink(missing_ok=True)
    done = subprocess.run([penstock, command, *map(str, arguments), "--quiet", "--json", str(path)],
                          capture_output=True, text=True)
    if done.returncode not in (0, 2) or (done.returncode == 2 and "cannot train" not in done.stderr):
        raise RuntimeError(f"{command} {arguments}: {done.stderr}")
    return json.loads(path.read_text()) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("penstock")
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--most-rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--tolerance", type=float, default=15, help="percent of the predicted time")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    wrong = late = timed = 0
    print("| model | image | batch | budget | feasible | runs | planned peak | pool peak | predicted s | measured s | off by | rounds |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for _ in range(options.cases):
            model, sizes, batches = dice.choice(MODELS)
            size, batch = dice.choice(sizes), dice.choice(batches)
            arguments = [model, "--image-size", size, "--batch", batch, "--lr", "0.001"]
            if model != "unet":
                arguments += ["--classes", 10]
            whole = run(options.penstock, "plan", [*arguments, "--profile", "fresh"], folder)
            low, high = whole["smallest_bytes"] * 0.8, whole["in_memory_bytes"] * 1.1
            budget = f"{int(dice.uniform(low, high)) // 2**20}MiB"
            arguments += ["--memory", budget]
            trained = run(options.penstock, "train", [*arguments, "--steps", options.steps], folder)
            plan_file = pathlib.Path(folder) / "to-train-by.json"
            planned = run(options.penstock, "plan", [*arguments, "--out", plan_file], folder)
            feasible, runs = planned is not None, trained is not None
            cells = [model, size, batch, budget, "yes" if feasible else "no", "yes" if runs else "no"]
            if feasible != runs:
                wrong += 1
            if not (feasible and runs):
                print("| " + " | ".join(map(str, cells)) + " | | | | | | |", flush=True)
                continue
            predicted = measured = math.inf
            for i in range(options.most_rounds):
                if i > 0:
                    run(options.penstock, "train", [*arguments, "--steps", options.steps], folder)
                    planned = run(options.penstock, "plan", [*arguments, "--out", plan_file], folder)
                row = planned["budgets"][0]
                done = run(options.penstock, "train", [*arguments, "--steps", options.steps, "--plan", plan_file], folder)
                predicted = min(predicted, row["predicted_step_seconds"])
                measured = min(measured, *done["step_seconds"][1:])
                off = 100 * (measured / predicted - 1)
                if done["pool_peak_bytes"] != row["planned_peak_bytes"]:
                    wrong += 1
                if i + 1 >= options.rounds and abs(off) <= options.tolerance:
                    break
            timed += 1
            late += abs(off) > options.tolerance
            cells += [common.mib(row["planned_peak_bytes"]), common.mib(done["pool_peak_bytes"]), f"{predicted:.3f}",
                      f"{measured:.3f}", f"{off:+.1f} %", i + 1]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    print(f"{options.cases} cases: {wrong} with another outcome or peak than planned; "
          f"{late} of {timed} further than {options.tolerance:g} % from the predicted time")
    return 1 if wrong or late else 0


sys.exit(main())
