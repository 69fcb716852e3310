"""Penstock against PyTorch: same model, batch, threads and optimizer, interleaved in one run.

Each round runs every contender once, in a fresh process; a contender's speed in a round is that of its best step
after the first (the first pays for set-up in both). Ratios are taken inside a round, and their median, least and
largest over the rounds are reported.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CASES = [("resnet50", 16), ("resnet50", 64), ("vgg16", 16), ("densenet121", 16), ("unet", 4)]
# An allocator that keeps its memory from step to step instead of giving it back to the kernel.
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "1000000000000", "MALLOC_TOP_PAD_": "268435456"}


def run_penstock(options, model, batch):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "result.json"
        subprocess.run(
            [options.penstock, "train", model, "--batch", str(batch), "--steps", str(options.steps), "--threads",
             str(options.threads), "--image-size", "224", "--policy", "keep", "--lr", "0.01", "--weight-decay", "1e-4",
             "--quiet", "--json", str(path)],
            check=True)
        return json.loads(path.read_text())


def run_torch(options, model, batch, mode, environment):
    output = subprocess.run(
        [sys.executable, HERE / "torch_worker.py", model, "--batch", str(batch), "--steps", str(options.steps),
         "--threads", str(options.threads), "--mode", mode],
        check=True, capture_output=True, text=True, env=os.environ | environment)
    return json.loads(output.stdout.splitlines()[-1])


def images_per_second(result, batch):
    return batch / min(result["step_seconds"][1:])


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cases", nargs="*", help="such as resnet50:16")
    parser.add_argument("--modes", default="eager,tuned,compile")
    parser.add_argument("--json", help="write every figure to this file")
    options = parser.parse_args()
    cases = CASES
    if options.cases:
        cases = [(name, int(batch)) for name, batch in (case.split(":") for case in options.cases)]
    modes = options.modes.split(",")

    figures = []
    print("| model | batch | Penstock images/s | " + " | ".join(f"× {mode}" for mode in modes) +
          " | Penstock peak | " + " | ".join(f"{mode} peak" for mode in modes) + " |")
    print("|" + "---|" * (4 + 2 * len(modes)))
    for model, batch in cases:
        rounds = []
        for _ in range(options.rounds):
            results = {"penstock": run_penstock(options, model, batch)}
            for mode in modes:
                environment = TUNED if mode == "tuned" else {}
                results[mode] = run_torch(options, model, batch, "eager" if mode == "tuned" else mode, environment)
            rounds.append(results)
        speeds = {name: [images_per_second(results[name], batch) for results in rounds] for name in rounds[0]}
        peaks = {name: max(results[name]["peak_rss_bytes"] for results in rounds) for name in rounds[0]}
        ratios = {mode: [mine / other for mine, other in zip(speeds["penstock"], speeds[mode])] for mode in modes}
        cells = [model, str(batch), spread(speeds["penstock"]), *(spread(ratios[mode]) for mode in modes)]
        cells += [f"{peaks[name] / 1e9:.2f} GB" for name in ("penstock", *modes)]
        print("| " + " | ".join(cells) + " |", flush=True)
        figures.append({"model": model, "batch": batch, "images_per_second": speeds, "ratio": ratios,
                        "peak_rss_bytes": peaks,
                        "startup_seconds": [results["penstock"]["startup_seconds"] for results in rounds]})
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=2) + "\n")


main()
