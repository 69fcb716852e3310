"""What virtual addressing saves: the smallest budget and the in-memory peak of each pool for each model.

usage: pools.py PENSTOCK [MODEL:BATCH ...]
"""
import sys

import common

CASES = ["resnet50:32", "vgg16:16", "densenet121:32", "inception-v4:16", "unet:8"]


def main():
    penstock, cases = sys.argv[1], sys.argv[2:] or CASES
    print("| model | batch | smallest, virtual | smallest, packed | saved | in-memory pool peak, virtual | packed |")
    print("|---|---|---|---|---|---|---|")
    for case in cases:
        model, batch = case.split(":")
        smallest, peak = {}, {}
        for pool in ("virtual", "packed"):
            arguments = [model, "--batch", batch, "--pool", pool]
            smallest[pool] = common.smallest_mib(penstock, *arguments, "--policy", "window")
            whole = common.train(penstock, *arguments, "--policy", "keep", "--steps", "1", "--lr", "0.01")
            peak[pool] = whole["pool_peak_bytes"]
        saved = 100 * (1 - smallest["virtual"] / smallest["packed"])
        print(f"| {model} | {batch} | {smallest['virtual']} MiB | {smallest['packed']} MiB | {saved:.0f} % | "
              f"{common.mib(peak['virtual'])} | {common.mib(peak['packed'])} |", flush=True)


main()
