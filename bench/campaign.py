#!/usr/bin/env python3
"""Random training runs inside a memory cgroup of the budget's size: same bits, under budget, or a refusal that is true.

usage: campaign.py PENSTOCK [--cases N | --minutes M] [--seed S] [--first K] [--kills SHARE] [--only K]

Case K of seed S is always the same: network, batch, optimizer, threads, policy, pool, tier, throttling, evaluation,
budget, and what happens to it:
  whole    trains to the end within a budget between the smallest and what training in memory takes
  resumed  stops half way, goes on from its checkpoint with another budget, policy and pool
  killed   kill -9 at random moments, each time resumed from the last checkpoint
  refused  a budget below the smallest: exit code 2, one line; the budget which that line names trains
Some run in two ranks. A run's oracle is the run without a budget: weights_sha256 is the same, the peak lies
under the budget, the kernel killed nobody, nothing is left behind. What is astray is printed with its commands;
the exit code is then 1. As root the runs are in a cgroup (v1 or v2); otherwise only the peak that they tell counts.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import common

MIB = 1 << 20
# Name, image sizes, batches, how often: those with many parameters take longer.
NETWORKS = [
    ("lenet", [28], [8, 64, 256], 5), ("resnet20", [16, 24, 32], [4, 16, 48], 10), ("resnet18", [32, 64], [2, 8], 4),
    ("resnet50", [32, 64], [2, 6], 3), ("densenet121", [32, 64], [2, 4], 4), ("unet", [32, 48], [1, 3], 3),
    ("unet3d", [16], [1, 2], 4), ("inception-v4", [75], [2], 1), ("alexnet", [64], [2], 1)]
POLICIES = ["auto", "auto", "window", "lms", "superneurons", "pooch"]


class Astray(Exception):
    pass


class Group:
    """A memory cgroup of one budget."""

    def __init__(self, limit_bytes):
        self.path = None
        for root, limit, swap in ((pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.swappiness"),
                                  (pathlib.Path("/sys/fs/cgroup"), "memory.max", "memory.swap.max")):
            path = root / f"penstock-campaign-{os.getpid()}"
            try:
                path.mkdir()
                (path / limit).write_text(str(limit_bytes))
                with contextlib.suppress(OSError):
                    (path / swap).write_text("0")
                self.path = path
                return
            except OSError:
                with contextlib.suppress(OSError):
                    path.rmdir()

    def prefix(self):
        return ["sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "sh"] if self.path else []

    def close(self):
        for _ in range(100):
            if not self.path:
                return
            try:
                self.path.rmdir()
                self.path = None
            except OSError:
                time.sleep(0.05)


class Case:
    def __init__(self, options, number):
        self.penstock, self.number = options.penstock, number
        self.dice = dice = random.Random(f"{options.seed}:{number}")
        model, sizes, batches, _ = dice.choices(NETWORKS, weights=[network[3] for network in NETWORKS])[0]
        self.ranks = 2 if dice.random() < 0.12 else 1
        self.steps = dice.randint(3, 6)
        self.network = [model, "--image-size", dice.choice(sizes), "--batch", dice.choice(batches), "--classes",
                        dice.choice([2, 10]), "--seed", dice.randrange(1000), "--steps", self.steps, "--lr", "0.01",
                        "--optimizer", dice.choice(["sgd", "adam", "adamw"]), "--threads",
                        1 if self.ranks > 1 else dice.randint(1, 2)]
        if dice.random() < 0.3:
            self.network.append("--evaluate")
        if self.ranks > 1 and dice.random() < 0.5:
            self.network.append("--shard-optimizer")
        kinds = ["whole", "resumed", "refused"] if dice.random() >= options.kills else ["killed"]
        self.kind = dice.choices(kinds, weights=[5, 3, 2][:len(kinds)])[0]
        self.commands = []

    def memory_options(self):
        dice = self.dice
        chosen = ["--policy", dice.choice(POLICIES), "--pool", dice.choice(["auto", "virtual", "packed"]), "--tier",
                  dice.choice(["disk", "disk", "disk-threads", "ram"]), "--verify", dice.choice(["sampled", "full", "off"]),
                  "--profile", dice.choice(["cached", "fresh"])]
        if dice.random() < 0.3:
            chosen += ["--tier-bandwidth", f"{dice.choice([50, 100, 200, 800])}MB/s"]
        return chosen

    def command(self, arguments):
        words = [self.penstock, "train", *map(str, arguments)]
        if self.ranks > 1:
            words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(self.ranks), *words]
        return words

    def start(self, arguments, prefix=()):
        words = [*prefix, *self.command(arguments)]
        self.commands.append(shlex.join(words))
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                env=os.environ | {"XDG_CACHE_HOME": str(self.folder / "cache")}, start_new_session=True)

    def finish(self, process):
        errors = process.communicate()[1]
        return process.returncode, errors.strip()

    def smallest_mib(self, memory):
        arguments = [*self.network, *memory]
        # Its peak as one rank: the ranks' own share comes on top, which the refusal of ranks tells.
        process = self.start([*arguments, "--memory", "8MiB"])
        code, errors = self.finish(process)
        found = re.search(r"--memory (\d+)MiB", errors)
        if code != 2 and self.ranks == 1 or not found:
            raise Astray(f"8 MiB: exit code {code}, {errors[-300:]!r}")
        return int(found.group(1))

    def train(self, arguments, budget_mib, kill_after=None):
        """Trains in a group of the budget's size. The result's JSON; None if it was killed as it should be."""
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        swap = self.folder / "swap"
        swap.mkdir(exist_ok=True)
        # Memory as a tier lies outside the budget, and each rank has a budget of its own.
        alone = self.ranks == 1 and arguments[arguments.index("--tier") + 1] != "ram"
        group = Group(budget_mib * MIB) if alone else None
        try:
            process = self.start([*arguments, "--memory", f"{budget_mib}MiB", "--swap-dir", swap, "--json", result, "--quiet"],
                                 group.prefix() if group else ())
            if kill_after is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(kill_after)
                if process.poll() is None:
                    os.killpg(process.pid, 9)
                    process.communicate()
                    return None
            code, errors = self.finish(process)
        finally:
            if group:
                group.close()
        if code != 0:
            raise Astray(f"exit code {code} with {budget_mib} MiB: {errors[-300:]!r}")
        left = [path.name for path in swap.iterdir()]
        if left:
            raise Astray(f"left in the swap folder: {left}")
        told = json.loads(result.read_text())
        if told["peak_rss_bytes"] > budget_mib * MIB:
            raise Astray(f"peak {told['peak_rss_bytes'] / MIB:.1f} MiB within {budget_mib} MiB")
        return told

    def expect_same(self, told, expected):
        if told["weights_sha256"] != expected["weights_sha256"]:
            raise Astray(f"other bits: {told['weights_sha256'][:16]} for {expected['weights_sha256'][:16]}")

    def check_folder(self, folder):
        left = [path.name for path in folder.iterdir() if "partial" in path.name]
        if left:
            raise Astray(f"left beside the checkpoint: {left}")

    def run(self, folder):
        self.folder = folder
        reference = folder / "reference.json"
        process = self.start([*self.network, "--json", reference, "--quiet"])
        code, errors = self.finish(process)
        if code != 0:
            raise Astray(f"in memory: exit code {code}, {errors[-300:]!r}")
        expected = json.loads(reference.read_text())
        whole_mib = expected["peak_rss_bytes"] // MIB
        memory = self.memory_options()
        smallest = self.smallest_mib(memory)

        def budget():
            share = self.dice.choice([0, 0, 0.05, 0.2, 0.5, 0.9])
            return smallest + int(share * max(0, whole_mib - smallest))

        if self.kind == "refused":
            below = int(smallest * self.dice.uniform(0.5, 0.97))
            process = self.start([*self.network, *memory, "--memory", f"{below}MiB"])
            code, errors = self.finish(process)
            named = re.search(r"--memory (\d+)MiB", errors)
            if self.ranks == 1 and code == 0:
                # What the first refusal named is rounded up to whole MiB and to what surely works.
                if below < smallest - max(8, smallest // 10):
                    raise Astray(f"trains in {below} MiB, though {smallest} was named the smallest")
            elif not named:
                raise Astray(f"{below} MiB: exit code {code}, {errors[-300:]!r}")
            else:
                self.expect_same(self.train([*self.network, *memory], int(named.group(1))), expected)
        elif self.kind == "whole":
            self.expect_same(self.train([*self.network, *memory], budget()), expected)
        else:
            checkpoint = folder / "checkpoints"
            keep = ["--checkpoint", checkpoint, "--checkpoint-every", 1]
            arguments = [*self.network, *memory, *keep]
            if self.kind == "resumed":
                first = [*self.network, *memory, *keep]
                first[first.index("--steps") + 1] = self.dice.randint(1, self.steps - 1)
                self.train(first, budget())
                memory = self.memory_options()
                smallest = self.smallest_mib(memory)
                self.expect_same(self.train([*self.network, *memory, *keep, "--resume", checkpoint], budget()), expected)
            else:
                limit = budget()
                begin = time.monotonic()
                self.expect_same(self.train([*self.network, *memory], limit), expected)
                took = time.monotonic() - begin
                resume = []
                for _ in range(self.dice.randint(1, 3)):
                    self.kills += 1
                    told = self.train([*arguments, *resume], limit, kill_after=self.dice.uniform(0.05, 1.1) * took)
                    if told:
                        break
                    if list(checkpoint.glob("*")) if checkpoint.exists() else []:
                        resume = ["--resume", checkpoint] if any(
                            not path.name.startswith(".") and "partial" not in path.name for path in checkpoint.iterdir()) else []
                told = self.train([*arguments, *resume], limit)
                self.expect_same(told, expected)
            self.check_folder(checkpoint)

    kills = 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("penstock", type=os.path.abspath)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", type=int, help="this case alone, with all its commands")
    parser.add_argument("--kills", type=float, default=0.25, help="share of cases that are killed")
    options = parser.parse_args()
    if options.only is not None:
        options.first, options.cases = options.only, 1
    end = time.monotonic() + 60 * options.minutes if options.minutes else None
    count, astray, kills = collections.Counter(), 0, 0
    number = options.first
    while (options.cases is None or number < options.first + options.cases) and (end is None or time.monotonic() < end):
        case = Case(options, number)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-campaign-"))
        try:
            case.run(folder)
            count[case.kind, "ranks" if case.ranks > 1 else "alone"] += 1
        except Astray as error:
            astray += 1
            print(f"case {number} ({case.kind}): {error}\n  " + "\n  ".join(case.commands), flush=True)
        finally:
            kills += case.kills
            shutil.rmtree(folder, ignore_errors=True)
        if options.only is not None:
            print("\n".join(case.commands))
        number += 1
    print("| what | alone | in two ranks |\n|---|---|---|")
    for kind in ("whole", "resumed", "killed", "refused"):
        print(f"| {kind} | {count[kind, 'alone']} | {count[kind, 'ranks']} |")
    print(f"{number - options.first} cases of seed {options.seed}, {kills} times kill -9, {astray} astray")
    sys.exit(1 if astray else 0)


if __name__ == "__main__":
    main()
