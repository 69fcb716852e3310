"""Runs Penstock and PyTorch on the same job, each in a fresh process."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# An allocator that keeps its memory from step to step instead of giving it back to the kernel.
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "1000000000000", "MALLOC_TOP_PAD_": "268435456"}


def add_options(parser):
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", help="write every figure to this file")


def run_penstock(options, model, batch, *more):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "result.json"
        subprocess.run(
            [options.penstock, "train", model, "--batch", str(batch), "--steps", str(options.steps), "--threads",
             str(options.threads), "--image-size", "224", "--lr", "0.01", "--weight-decay", "1e-4", "--quiet", "--json",
             str(path), *more],
            check=True)
        return json.loads(path.read_text())


def run_torch(options, model, batch, mode, environment, *more, prefix=(), steps=None, timeout=None):
    done = subprocess.run(
        [*prefix, sys.executable, str(HERE / "torch_worker.py"), model, "--batch", str(batch), "--steps",
         str(steps or options.steps), "--threads", str(options.threads), "--mode", mode, *more],
        capture_output=True, text=True, env=os.environ | environment, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(f"{model} {mode}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def images_per_second(result, batch):
    return batch / min(result["step_seconds"][1:])
