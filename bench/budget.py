"""Training under a budget against training in memory, interleaved; each run a fresh process.

usage: budget.py PENSTOCK [--model resnet50] [--batch 32] [--memory 1GiB] [--policies window,lms] [--rounds 3] [--steps 4]
"""
import statistics

import common


def main():
    parser = common.parser_of(__doc__, steps=4, rounds=3)
    parser.add_argument("--policies", default="window")
    options = parser.parse_args()
    arguments = [options.model, "--batch", options.batch, "--steps", options.steps, "--lr", "0.01"]
    policies = options.policies.split(",")
    ratios = {policy: [] for policy in policies}
    last = {}
    in_memory = []
    for _ in range(options.rounds):
        whole = common.train(options.penstock, *arguments, "--policy", "keep")
        in_memory.append(whole["images_per_second"])
        for policy in policies:
            part = common.train(options.penstock, *arguments, "--policy", policy, "--memory", options.memory)
            assert part["weights_sha256"] == whole["weights_sha256"], "the budget changed the result"
            assert part["peak_rss_bytes"] <= part["budget_bytes"], "the budget did not hold"
            ratios[policy].append(100 * part["images_per_second"] / whole["images_per_second"])
            last[policy] = part
    print(f"{options.model} batch {options.batch}: in memory {common.spread(in_memory)} images/s, "
          f"peak {common.mib(whole['peak_rss_bytes'])}")
    print("| policy | budget | % of in-memory speed | peak | out per step | in per step | stalled | tier sustained |")
    print("|---|---|---|---|---|---|---|---|")
    for policy in policies:
        part = last[policy]
        moved = part["swapped_out_bytes"] + part["swapped_in_bytes"]
        seconds = statistics.median(part["step_seconds"][1:])
        print(f"| {policy} | {options.memory} | {common.spread(ratios[policy], 1)} | {common.mib(part['peak_rss_bytes'])} | "
              f"{common.mib(part['swapped_out_bytes'])} | {common.mib(part['swapped_in_bytes'])} | "
              f"{100 * part['stall_seconds'] / seconds:.1f} % | {moved / seconds / 1e6:.0f} MB/s |")


main()
