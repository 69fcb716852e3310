"""Penstock against PyTorch: same model, batch, threads and optimizer, interleaved in one run.

Each round runs every contender once, in a fresh process; a contender's speed in a round is that of its best step
after the first (the first pays for set-up in both). Ratios are taken inside a round, and their median, least and
largest over the rounds are reported.
"""
import argparse
import json
import pathlib
import statistics

import contenders

CASES = [("resnet50", 16), ("resnet50", 64), ("vgg16", 16), ("densenet121", 16), ("unet", 4)]


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    contenders.add_options(parser)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", nargs="*", help="such as resnet50:16")
    parser.add_argument("--modes", default="eager,tuned,compile")
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
            results = {"penstock": contenders.run_penstock(options, model, batch, "--policy", "keep")}
            for mode in modes:
                tuned = mode == "tuned"
                results[mode] = contenders.run_torch(options, model, batch, "eager" if tuned else mode,
                                                     contenders.TUNED if tuned else {})
            rounds.append(results)
        speeds = {name: [contenders.images_per_second(results[name], batch) for results in rounds] for name in rounds[0]}
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
