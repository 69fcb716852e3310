#!/usr/bin/env python3
"""Random training runs inside a memory cgroup of the budget's size: same bits, under budget, or a refusal that is true.

usage: campaign.py PENSTOCK [--cases N | --minutes M] [--seed S] [--first K] [--jobs N] [--kills SHARE] [--only K] [--log FILE]
       campaign.py PENSTOCK --table FILE ...

Case K of seed S is always the same, and several are run at a time: network of images or text, batch, slices of it, optimizer, threads, policy, pool,
tier, space on it, throttling, evaluation, budget, and what happens to it:
  whole    trains to the end within a budget between the smallest and what training in memory takes
  resumed  stops half way, goes on from its checkpoint with another budget, policy and pool
  stopped  SIGINT or SIGTERM at a random moment: exit code 130 or 143, and the checkpoint goes on
  killed   kill -9 at random moments (of ranks: of one or of all), each time resumed from the last checkpoint
  refused  a budget below the smallest: exit code 2, one line; the budget which that line names trains
Some run in two ranks. A run's oracle is the run without a budget: weights_sha256 is the same, the peak lies
under the budget, the kernel killed nobody, nothing is left behind. What is astray is printed with its commands;
the exit code is then 1. As root the runs are in a cgroup (v1 or v2); otherwise only the peak that they tell counts.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20
# Name, image sizes or lengths of a sequence, batches, how often: most are such that a thousand cases take half an hour.
NETWORKS = [
    ("lenet", [28], [8, 64, 256], 60), ("resnet20", [16, 24], [4, 16], 42), ("gpt2", [16, 32], [2, 8], 33),
    ("llama", [16, 32], [2, 8], 27), ("resnet18", [32], [2], 1), ("resnet50", [32], [2], 1), ("densenet121", [32], [2], 1),
    ("unet", [32], [1], 1), ("unet3d", [16], [1], 1), ("alexnet", [64], [2], 1)]
# Models of text, small ones.
TEXTS = {
    "gpt2": {"model_type": "gpt2", "n_layer": 3, "n_head": 4, "n_embd": 64, "vocab_size": 256, "n_positions": 32,
             "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1},
    "llama": {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 96,
              "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 64}}
POLICIES = ["auto", "auto", "window", "window", "lms", "superneurons", "pooch"]
KINDS = ["whole", "resumed", "stopped", "refused"]
STOPPED = {signal.SIGINT: 130, signal.SIGTERM: 143}


class Astray(Exception):
    pass


def processes_below(pid):
    """The programs that a launcher has started: its children and theirs that have none."""
    children = collections.defaultdict(list)
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            children[int(path.read_text().rpartition(")")[2].split()[1])].append(int(path.parent.name))
    below, found = [pid], []
    while below:
        one = below.pop()
        below += children[one]
        if not children[one] and one != pid:
            found.append(one)
    return sorted(found)


class References:
    """What training gives without a budget, of each network once."""

    def __init__(self):
        self.lock, self.found = threading.Lock(), {}

    def of(self, network, train):
        """What train() gave for it. Whoever comes while it trains waits."""
        with self.lock:
            future = self.found.get(network)
            first = future is None
            if first:
                future = self.found[network] = concurrent.futures.Future()
        if first:
            try:
                future.set_result(train())
            except BaseException as error:
                future.set_exception(error)
        return future.result()


class Group:
    """A memory cgroup of one budget."""

    def __init__(self, limit_bytes):
        self.path = None
        for root, limit, swap in ((pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.swappiness"),
                                  (pathlib.Path("/sys/fs/cgroup"), "memory.max", "memory.swap.max")):
            path = root / f"penstock-campaign-{os.getpid()}-{threading.get_ident()}"
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
    def __init__(self, options, number, references):
        self.penstock, self.number, self.references = options.penstock, number, references
        self.dice = dice = random.Random(f"{options.seed}:{number}")
        model, sizes, batches, _ = dice.choices(NETWORKS, weights=[network[3] for network in NETWORKS])[0]
        self.ranks = 2 if dice.random() < 0.08 else 1
        self.name, self.steps = model, dice.randint(2, 4)
        self.text, size, batch = TEXTS.get(model), dice.choice(sizes), dice.choice(batches)
        self.network = ["config.json" if self.text else model, "--sequence" if self.text else "--image-size", size,
                        "--batch", batch, "--seed", dice.randrange(3), "--steps", self.steps, "--lr", "0.01",
                        "--optimizer", dice.choice(["sgd", "adam", "adamw"]), "--threads",
                        1 if self.ranks > 1 else dice.randint(1, 2)]
        if not self.text:
            self.network += ["--classes", dice.choice([2, 10])]
            if batch > 1 and dice.random() < 0.15:
                self.network += ["--slice", dice.randint(1, batch // 2)]
        # An evaluation of images goes over a thousand of them.
        if dice.random() < (0.25 if self.text or model == "lenet" else 0.05):
            self.network.append("--evaluate")
        if self.ranks > 1 and dice.random() < 0.5:
            self.network.append("--shard-optimizer")
        killed = dice.random() < options.kills
        self.kind = "killed" if killed else dice.choices(KINDS, weights=[5, 3, 2, 2])[0]
        if killed:
            # So that there is something between the first checkpoint and the end.
            self.steps += 6
            self.network[self.network.index("--steps") + 1] = self.steps
        self.commands = []

    def memory_options(self):
        dice = self.dice
        chosen = ["--policy", dice.choice(POLICIES), "--pool", dice.choice(["auto", "virtual", "packed"]), "--tier",
                  dice.choice(["disk", "disk", "disk-threads", "ram"]), "--verify", dice.choice(["sampled", "full", "off"]),
                  "--profile", dice.choice(["cached", "fresh"])]
        if dice.random() < 0.3:
            chosen += ["--tier-bandwidth", f"{dice.choice([50, 100, 200, 800])}MB/s"]
        if dice.random() < 0.1:
            chosen += ["--swap-space", f"{dice.choice([0, 1, 4, 16])}MiB"]
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
        # A launcher of ranks says much about what the program has said.
        own = [line for line in errors.splitlines() if line.startswith("penstock:")]
        return process.returncode, "\n".join(own) or errors.strip()

    def smallest_mib(self, memory):
        arguments = [*self.network, *memory]
        # Its peak as one rank: the ranks' own share comes on top, which the refusal of ranks tells.
        process = self.start([*arguments, "--memory", "8MiB"])
        code, errors = self.finish(process)
        found = re.search(r"--memory (\d+)MiB", errors)
        if code != 2 and self.ranks == 1 or not found:
            raise Astray(f"8 MiB: exit code {code}, {errors[-300:]!r}")
        return int(found.group(1))

    def interrupt(self, process, number):
        """Sends a signal to the program: of ranks, kill -9 to one or to all, what else there is to the launcher."""
        if self.ranks == 1 or number != signal.SIGKILL:
            os.kill(process.pid, number)
            return
        ranks = processes_below(process.pid)
        for pid in ranks if self.dice.random() < 0.5 else ranks[-1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def train(self, arguments, budget_mib, signal_after=None, number=signal.SIGKILL, first=lambda: True):
        """Trains in a group of the budget's size. The result's JSON; None if a signal ended it as it should. The signal
        comes so many seconds after first() is true."""
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
            interrupted = False
            if signal_after is not None:
                while not first() and process.poll() is None:
                    time.sleep(0.005)
                try:
                    process.wait(signal_after)
                except subprocess.TimeoutExpired:
                    interrupted = True
                    self.interrupt(process, number)
            code, errors = self.finish(process)
        finally:
            if group:
                group.close()
        if interrupted and code != 0:
            # A signal that comes before anything is caught ends the program as it would end any.
            if self.ranks == 1 and number != signal.SIGKILL and code not in (-number, STOPPED[number]):
                raise Astray(f"signal {number}: exit code {code}, {errors[-300:]!r}")
            if self.ranks == 1 and "penstock:" in errors:
                raise Astray(f"signal {number}: {errors[-300:]!r}")
            return None
        if code != 0:
            raise Astray(f"exit code {code} with {budget_mib} MiB: {errors[-300:]!r}")
        left = [path.name for path in swap.iterdir()]
        if left:
            raise Astray(f"left in the swap folder: {left}")
        told = json.loads(result.read_text())
        if told["peak_rss_bytes"] > budget_mib * MIB:
            raise Astray(f"peak {told['peak_rss_bytes'] / MIB:.1f} MiB within {budget_mib} MiB")
        self.replans += told["replans"]
        self.swapped += told["swapped_out_bytes"] > 0
        return told

    def train_in_memory(self):
        result = self.folder / "reference.json"
        process = self.start([*self.network, "--json", result, "--quiet"])
        code, errors = self.finish(process)
        if code != 0:
            raise Astray(f"in memory: exit code {code}, {errors[-300:]!r}")
        return json.loads(result.read_text())

    def expect_same(self, told, expected):
        if told["weights_sha256"] != expected["weights_sha256"]:
            raise Astray(f"other bits: {told['weights_sha256'][:16]} for {expected['weights_sha256'][:16]}")

    def check_folder(self, folder):
        left = [path.name for path in folder.iterdir() if "partial" in path.name]
        if left:
            raise Astray(f"left beside the checkpoint: {left}")

    def run(self, folder):
        self.folder = folder
        if self.text:
            (folder / "config.json").write_text(json.dumps(self.text))
        expected = self.references.of((self.name, self.ranks, *self.network), self.train_in_memory)
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
            if code == 0:
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
                self.expect_same(self.train([*self.network, *memory, *keep[:1], folder / "once"], limit), expected)
                took = time.monotonic() - begin
                stopped = self.kind == "stopped"
                number = self.dice.choice(list(STOPPED)) if stopped else signal.SIGKILL
                resume = []

                def kept():
                    return checkpoint.exists() and any(path.suffix == ".safetensors" for path in checkpoint.iterdir())

                for _ in range(1 if stopped else self.dice.randint(1, 4)):
                    begin = time.monotonic()
                    # Most of a short run is its beginning, in which there is nothing yet to go on from.
                    late = self.dice.random() < 0.7
                    told = self.train([*arguments, *resume], limit, self.dice.uniform(0, 0.05 if late else 1) * took, number,
                                      kept if late else lambda: True)
                    if told:
                        # It was faster than the first time: once more from the beginning.
                        took = min(took, time.monotonic() - begin)
                        self.expect_same(told, expected)
                        shutil.rmtree(checkpoint)
                        resume = []
                        continue
                    self.kills += not stopped
                    if kept():
                        resume = ["--resume", checkpoint]
                        self.resumes += 1
                told = self.train([*arguments, *resume], limit)
                self.expect_same(told, expected)
            self.check_folder(checkpoint)

    kills = resumes = replans = swapped = 0


def run_case(options, number, references):
    """Runs a case; what became of it."""
    case = Case(options, number, references)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-campaign-"))
    begin = time.monotonic()
    astray = ""
    try:
        case.run(folder)
    except Astray as error:
        astray = str(error)
        print(f"case {number} ({case.kind}): {error}\n  " + "\n  ".join(case.commands), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.only is not None:
        print("\n".join(case.commands))
    return {"number": number, "kind": case.kind, "ranks": case.ranks, "network": case.name, "kills": case.kills,
            "resumes": case.resumes, "replans": case.replans, "swapped": case.swapped,
            "seconds": round(time.monotonic() - begin, 1), "astray": astray}


def print_table(records):
    print("| what | alone | in two ranks |\n|---|---|---|")
    for kind in (*KINDS, "killed"):
        alone, ranks = (sum(record["kind"] == kind and (record["ranks"] > 1) == many for record in records)
                        for many in (False, True))
        print(f"| {kind} | {alone} | {ranks} |")
    total = {name: sum(record[name] for record in records) for name in ("kills", "resumes", "replans", "swapped")}
    print(f"{len(records)} cases, {total['kills']} times kill -9, {total['resumes']} resumed after a signal, {total['swapped']} "
          f"runs that swapped, {total['replans']} plans made in mid-run, {sum(record['astray'] != '' for record in records)} astray")


def run_cases(options):
    """Runs cases until there are enough or the time is over."""
    begin = time.monotonic()
    end = begin + 60 * options.minutes if options.minutes else None
    numbers = itertools.count(options.first) if options.cases is None else range(options.first, options.first + options.cases)
    lock, numbers, references, records = threading.Lock(), iter(numbers), References(), []

    def work():
        while end is None or time.monotonic() < end:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            record = run_case(options, number, references)
            with lock:
                records.append(record)
                if options.log:
                    with open(options.log, "a") as log:
                        log.write(json.dumps(record) + "\n")

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(work) for _ in range(options.jobs)]:
            done.result()
    print(f"cases {options.first} to {options.first + len(records) - 1} of seed {options.seed}, "
          f"{(time.monotonic() - begin) / max(1, len(records)):.1f} s each, {options.jobs} at a time")
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("penstock", type=os.path.abspath)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--only", type=int, help="this case alone, with all its commands")
    parser.add_argument("--kills", type=float, default=0.25, help="share of cases that are killed")
    parser.add_argument("--log", help="adds a line of JSON for each case to this file")
    parser.add_argument("--table", nargs="+", help="instead: the table of such files")
    options = parser.parse_args()
    if options.table:
        print_table([json.loads(line) for name in options.table for line in open(name)])
        return
    if options.only is not None:
        options.first, options.cases = options.only, 1
    records = run_cases(options)
    print_table(records)
    sys.exit(1 if any(record["astray"] for record in records) else 0)


if __name__ == "__main__":
    main()
