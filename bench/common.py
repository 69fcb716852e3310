"""What the benchmark scripts share: running the program and telling ratios with their spread."""
import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import tempfile


def parser_of(description, steps, rounds):
    """For scripts that train one network within one budget, interleaved, a few times."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("penstock")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def train(penstock, *arguments):
    """Runs `penstock train` in a fresh process and returns its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "result.json"
        subprocess.run([penstock, "train", *map(str, arguments), "--quiet", "--json", str(path)], check=True)
        return json.loads(path.read_text())


class Turns:
    """Runs that take turns step by step, so that they see the same machine though its speed changes within seconds."""

    def __init__(self, penstock):
        self.penstock = penstock
        self.folder = tempfile.TemporaryDirectory()
        self.runs = []

    def start(self, *arguments):
        """Starts `penstock train` and lets it take its first step. Returns its number."""
        path = pathlib.Path(self.folder.name) / f"{len(self.runs)}.json"
        process = subprocess.Popen([self.penstock, "train", *map(str, arguments), "--quiet", "--take-turns", "--json", str(path)])
        self.runs.append((process.pid, path))
        os.waitpid(process.pid, os.WUNTRACED)
        return len(self.runs) - 1

    def step(self, run):
        """Lets a run take one step. Returns whether it goes on."""
        os.kill(self.runs[run][0], signal.SIGCONT)
        return os.WIFSTOPPED(os.waitpid(self.runs[run][0], os.WUNTRACED)[1])

    def result(self, run):
        """Its JSON, once it has ended."""
        return json.loads(self.runs[run][1].read_text())


def smallest_mib(penstock, *arguments):
    """The smallest budget, as the refusal of one that is too small names it."""
    run = subprocess.run([penstock, "train", *map(str, arguments), "--steps", "1", "--memory", "8MiB"],
                         capture_output=True, text=True)
    found = re.search(r"--memory (\d+)MiB", run.stderr)
    if not found:
        raise RuntimeError(f"no smallest budget in: {run.stderr}")
    return int(found.group(1))


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def mib(size_bytes):
    return f"{size_bytes / 2**20:.0f} MiB"
