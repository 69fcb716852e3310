#!/usr/bin/env python3
"""Two builds of Penstock on the same job, step by step in turn.

usage: versions.py PENSTOCK OTHER [--steps N] [--cases 'resnet50 --batch 16' ...]

Both programs run at the same time; all but the one whose turn it is are stopped, and the turn passes after each
step. So both see the same machine, however its speed drifts. The first two steps are not counted. The table has the
median of a step of each, and the median of the ratio of neighbouring steps with its quartiles: above 1 the
first program is faster.
"""
import argparse
import os
import pty
import re
import select
import signal
import statistics
import subprocess
import tempfile
import time

CASES = ["resnet50 --batch 16", "resnet50 --batch 64", "resnet50 --batch 64 --memory 1GiB"]
UNCOUNTED = 2


class Trainee:
    """A training run that goes on only while step() waits for it. It shows "step N/" after each step."""

    def __init__(self, command, folder):
        self.done, self.buffer = 0, b""
        self.terminal, other = pty.openpty()
        environment = dict(os.environ, XDG_CACHE_HOME=folder)
        self.process = subprocess.Popen(command, stdout=other, stderr=other, env=environment, cwd=folder)
        os.close(other)

    def step(self):
        """Lets it run until one more step is shown, or more if this is noticed late; seconds that each took."""
        self.process.send_signal(signal.SIGCONT)
        start = time.perf_counter()
        before = self.done
        while self.done == before:
            if not select.select([self.terminal], [], [], 600)[0]:
                raise SystemExit("versions.py: no step within ten minutes")
            try:
                self.buffer += os.read(self.terminal, 65536)
            except OSError:
                raise SystemExit("versions.py: ended early: " + self.buffer.decode(errors="replace")[-300:])
            found = re.findall(rb"step (\d+)/", self.buffer)
            if found:
                self.done = int(found[-1])
                self.buffer = self.buffer[-200:]
        seconds = (time.perf_counter() - start) / (self.done - before)
        self.process.send_signal(signal.SIGSTOP)
        return seconds

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


def steps_to_run(steps):
    """Of a program of which so many are counted: it may be stopped late, beside busy processes a whole step."""
    return 2 * (steps + UNCOUNTED) + 1


def penstock_command(program, case, steps):
    return [os.path.abspath(program), "train", *case.split(), "--steps", str(steps_to_run(steps)), "--seed", "1"]


def in_turn(commands, steps):
    """The seconds of so many steps of each command."""
    seconds = [[] for _ in commands]
    with tempfile.TemporaryDirectory() as folder:
        trainees = []
        try:
            for number, command in enumerate(commands):
                own = os.path.join(folder, str(number))
                os.mkdir(own)
                trainees.append(Trainee(command, own))
                trainees[-1].process.send_signal(signal.SIGSTOP)
            for step in range(steps + UNCOUNTED):
                for trainee, own in zip(trainees, seconds):
                    own.append(trainee.step())
        finally:
            for trainee in trainees:
                trainee.end()
    return [own[UNCOUNTED:] for own in seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--cases", nargs="*", default=CASES)
    options = parser.parse_args()
    print("| job | first, s a step | second, s a step | first is faster by (quartiles) |\n|---|---|---|---|")
    for case in options.cases:
        mine, other = in_turn([penstock_command(program, case, options.steps) for program in options.programs],
                              options.steps)
        ratios = sorted(b / a for a, b in zip(mine, other))
        quartiles = statistics.quantiles(ratios, n=4)
        print(f"| {case} | {statistics.median(mine):.3f} | {statistics.median(other):.3f} | "
              f"{statistics.median(ratios):.3f} ({quartiles[0]:.3f}-{quartiles[2]:.3f}) |", flush=True)


if __name__ == "__main__":
    main()
