"""Policies over the bandwidth of a tier in memory, as a GPU behind a slow link sees it; each run a fresh process, interleaved.

usage: bandwidths.py PENSTOCK [--model resnet50] [--batch 32] [--memory 1GiB] [--bandwidths 50,100,200,400,800,0]
                     [--policies auto,pooch,superneurons,window,lms] [--steps 3] [--rounds 1]
"""
import statistics
import subprocess

import common


def main():
    parser = common.parser_of(__doc__, steps=3, rounds=1)
    parser.add_argument("--bandwidths", default="50,100,200,400,800,0", help="MB/s each way; 0: as fast as it goes")
    parser.add_argument("--policies", default="auto,pooch,superneurons,window,lms")
    options = parser.parse_args()
    policies = options.policies.split(",")
    bandwidths = options.bandwidths.split(",")
    shared = [options.model, "--batch", options.batch, "--steps", options.steps, "--lr", "0.01"]
    shares = {(bandwidth, policy): [] for bandwidth in bandwidths for policy in policies}
    for _ in range(options.rounds):
        whole = common.train(options.penstock, *shared, "--policy", "keep")["images_per_second"]
        for bandwidth in bandwidths:
            link = [] if bandwidth == "0" else ["--tier-bandwidth", f"{bandwidth}MB/s"]
            for policy in policies:
                try:
                    part = common.train(options.penstock, *shared, "--policy", policy, "--memory", options.memory, "--tier",
                                        "ram", *link)
                except subprocess.CalledProcessError:
                    continue  # The policy cannot run within the budget.
                shares[bandwidth, policy].append(100 * part["images_per_second"] / whole)
    print(f"{options.model} batch {options.batch} within {options.memory}: % of in-memory speed")
    print("| MB/s each way | " + " | ".join(policies) + " |")
    print("|---|" + "---|" * len(policies))
    for bandwidth in bandwidths:
        cells = [f"{statistics.median(shares[bandwidth, p]):.1f}" if shares[bandwidth, p] else "cannot run" for p in policies]
        print(f"| {'unlimited' if bandwidth == '0' else bandwidth} | " + " | ".join(cells) + " |", flush=True)


main()
