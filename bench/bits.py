#!/usr/bin/env python3
"""weights_sha256 of a table of runs: models, policies, pools, tiers, resume, ranks.

usage: bits.py PENSTOCK [OTHER]

With one program it prints the table as JSON; with a second one (a program, or the JSON that an earlier
call printed) it says which rows differ and exits with 1 if any does. Runs of one network must also agree
with each other, whatever the budget.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

MODELS = [  # model, image size, batch
    ("lenet", 28, 8), ("alexnet", 64, 4), ("vgg16", 32, 2), ("vgg19", 32, 2), ("resnet18", 32, 4), ("resnet34", 32, 4),
    ("resnet50", 32, 4), ("resnet101", 32, 2), ("resnet152", 32, 2), ("resnet20", 32, 8), ("resnet-137", 32, 2),
    ("densenet121", 32, 4), ("inception-v4", 75, 2), ("unet", 32, 2), ("unet3d", 16, 1)]
PRESSED = ("resnet50", 64, 8)
POLICIES = ["auto", "keep", "lms", "superneurons", "pooch", "window"]


class Runner:
    def __init__(self, program, folder):
        self.program = os.path.abspath(program)
        self.folder = folder

    def run(self, words, ranks=1):
        out = os.path.join(self.folder, "out.json")
        if os.path.exists(out):
            os.remove(out)
        command = [self.program] + [str(word) for word in words] + ["--json", out]
        environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(self.folder, "cache"))
        if ranks > 1:
            command = ["mpirun", "--oversubscribe", "-n", str(ranks)] + command
            environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            return "refused" if "cannot train within" in done.stderr else "failed: " + done.stderr.strip()[-200:]
        with open(out) as file:
            result = json.load(file)
        return result.get("weights_sha256", "none")


def smallest(program, words):
    done = subprocess.run([program] + [str(word) for word in words] + ["--memory", "1MiB"], capture_output=True, text=True)
    return int(done.stderr.split("--memory ")[1].split("MiB")[0])


def table(program):
    folder = tempfile.mkdtemp(prefix="bits-")
    try:
        runner = Runner(program, folder)
        rows = {}
        for model, size, batch in MODELS:
            for optimizer in ("sgd", "adam"):
                words = ["train", model, "--batch", batch, "--image-size", size, "--steps", 2, "--lr", 0.01, "--optimizer", optimizer]
                rows[f"{model} {optimizer}"] = runner.run(words)
        model, size, batch = PRESSED
        words = ["train", model, "--batch", batch, "--image-size", size, "--steps", 3, "--lr", 0.01]
        rows["pressed in memory"] = runner.run(words)
        least = smallest(program, words + ["--pool", "packed"])
        for policy in POLICIES:
            for pool in ("packed", "virtual"):
                ways = ["--policy", policy, "--pool", pool]
                own = smallest(program, words + ways)
                for more in (10, 60):
                    rows[f"pressed {policy} {pool} +{more}"] = runner.run(words + ways + ["--memory", f"{own + more}MiB"])
        for tier in ("disk", "disk-threads", "ram"):
            rows[f"pressed tier {tier}"] = runner.run(words + ["--tier", tier, "--memory", f"{least + 20}MiB"])
        saved = os.path.join(folder, "saved")
        runner.run(["train", model, "--batch", batch, "--image-size", size, "--steps", 2, "--lr", 0.01,
                    "--checkpoint", saved])
        rows["pressed resumed"] = runner.run(words + ["--resume", saved, "--memory", f"{least + 20}MiB"])
        for ranks in (2, 3):
            for more in ([], ["--shard-optimizer"]):
                rows[f"ranks {ranks} {' '.join(more)}"] = runner.run(
                    ["train", "resnet20", "--batch", 4, "--steps", 3, "--threads", 1, "--lr", 0.01, "--optimizer", "adam"] + more, ranks)
        return rows
    finally:
        shutil.rmtree(folder)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    first = table(sys.argv[1])
    print(json.dumps(first, indent=1))
    bad = [name for name, value in first.items() if value.startswith("failed")]
    pressed = {value for name, value in first.items() if name.startswith("pressed") and len(value) == 64}
    if len(pressed) != 1:
        bad.append("pressed runs differ among themselves")
    if len(sys.argv) == 3:
        if sys.argv[2].endswith(".json"):
            with open(sys.argv[2]) as file:
                second = json.load(file)
        else:
            second = table(sys.argv[2])
        bad += [name for name in second if first.get(name) != second[name] and "refused" not in (first.get(name), second[name])]
        print(f"{len(second)} rows compared, {len(bad)} differ", file=sys.stderr)
    for name in bad:
        print("differs:", name, file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
