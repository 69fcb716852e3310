"""Data-parallel training on one machine: two ranks of one thread each against one rank of one thread, in memory and
under a budget, interleaved; each run fresh processes. Then, where network namespaces are permitted, two "hosts" that
are joined by a slow link: the step's measured time against the predicted one.

usage: scaling.py PENSTOCK [--model resnet50] [--batch 8] [--memory 700MiB] [--rounds 3] [--steps 4]
                  [--rates 1gbit,200mbit] [--more "--shard-optimizer ..."]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import common

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMP_NUM_THREADS="1")


def run(command, arguments, environment=ENVIRONMENT):
    """Runs it with --json; the result and the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "result.json"
        done = subprocess.run([*command, "train", *map(str, arguments), "--quiet", "--json", str(path)],
                              env=environment, check=False)
        return (json.loads(path.read_text()) if path.exists() else None), done.returncode


def ranks(options, count, *more):
    arguments = [options.model, "--batch", options.batch, "--steps", options.steps, "--lr", "0.01", "--threads", 1, *options.more.split(),
                 *more]
    result, code = run(["mpirun", "-n", str(count), options.penstock], arguments)
    if code != 0:
        raise RuntimeError(f"{count} ranks ended with exit code {code}")
    return result


def speed_up(options):
    print(f"{options.model}, batch {options.batch} a rank, 1 thread a rank")
    print("| | 1 rank images/s | 2 ranks images/s | times | exchange s a step | of it hidden | peaks |")
    print("|---|---|---|---|---|---|---|")
    for name, more in (("in memory", ()), (options.memory, ("--memory", options.memory))):
        one, two, ratio = [], [], []
        for _ in range(options.rounds):
            one.append(ranks(options, 1, *more)["images_per_second"])
            last = ranks(options, 2, *more)
            two.append(last["images_per_second"])
            ratio.append(two[-1] / one[-1])
        peaks = ", ".join(common.mib(peak) for peak in last["rank_peak_rss_bytes"])
        print(f"| {name} | {common.spread(one)} | {common.spread(two)} | {common.spread(ratio)} | "
              f"{last['reduce_seconds']:.3f} | {100 * last['reduce_hidden_share']:.0f} % | {peaks} |")


def two_hosts(options):
    hosts = pathlib.Path(__file__).with_name("hosts.sh")
    print("\nTwo hosts joined by a link of limited bandwidth")
    print("| link | measured MB/s | exchange s a step | of it hidden | step s | predicted s | off by |")
    print("|---|---|---|---|---|---|---|")
    for rate in options.rates.split(","):
        arguments = [options.model, "--batch", options.batch, "--steps", 2 * options.steps, "--lr", "0.01", "--threads", 1,
                     "--policy", "auto", *options.more.split()]
        result, code = run([str(hosts), rate], arguments, dict(ENVIRONMENT, PENSTOCK=options.penstock))
        if code == 77:
            print("\nskipped: no network namespaces here")
            return
        if code != 0:
            raise RuntimeError(f"two hosts ended with exit code {code}")
        seconds = statistics.median(result["step_seconds"][1:])
        predicted = result["predicted_step_seconds"]
        print(f"| {rate} | {result['network_bandwidth'] / 1e6:.0f} | {result['reduce_seconds']:.3f} | "
              f"{100 * result['reduce_hidden_share']:.0f} % | {seconds:.3f} | {predicted:.3f} | "
              f"{100 * (seconds / predicted - 1):+.1f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("penstock")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--memory", default="700MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rates", default="1gbit,200mbit", help="of two hosts' link; empty: no two hosts")
    parser.add_argument("--more", default="", help="more options of train")
    options = parser.parse_args()
    options.penstock = str(pathlib.Path(options.penstock).resolve())
    speed_up(options)
    if options.rates:
        two_hosts(options)


main()
