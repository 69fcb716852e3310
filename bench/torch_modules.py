"""torchvision's networks and GPT-2 trained by Penstock and by PyTorch, a step of each in turn: speed and peak memory.

    PYTHONPATH=build/python build/torch-venv/bin/python bench/torch_modules.py [NETWORK ...] [--batch 16] [--steps 5]

A NETWORK is one of torchvision's, own/vit_b_16 for one of these that Penstock has built in, or gpt2:4x512 for GPT-2 on 4
sequences of 512 tokens (transformers', with scaled_dot_product_attention, AdamW and no dropout).

Each runs in a process of its own, which waits while the other takes its step; so both see the same load of the machine. PyTorch
runs in channels-last format, with the C library's allocator tuned to keep its memory (--allocator default: as it is), and compiled
with --compile. Prints one row a network: seconds of the median step, how many times as fast Penstock is, and its peak memory as a
share of PyTorch's. Memory is what each adds to its process from the moment when module and images are there, until the last
step's end: for Penstock that is the import as well, for both gradients, momentum, and the weights where they are copied. Of
networks that Penstock has itself (GPT-2, own/...) the weights are counted for both.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from contenders import TUNED  # noqa: E402

NETWORKS = ["mobilenet_v2", "efficientnet_b0", "convnext_tiny", "vit_b_16", "swin_t", "resnext50_32x4d"]


def resident_bytes(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def text_step_of(arguments, name):
    """The same for gpt2:BATCHxSEQUENCE."""
    import torch
    import transformers

    batch, sequence = (int(extent) for extent in name.partition(":")[2].split("x"))
    rows = torch.randint(0, 50257, (batch, sequence + 1), generator=torch.Generator().manual_seed(0))
    tokens, labels = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    config = transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False)
    before = resident_bytes("VmRSS")
    if arguments.worker == "penstock":
        import penstock as ps

        with tempfile.TemporaryDirectory() as folder:
            config.save_pretrained(folder)
            session = ps.Session(f"{folder}/config.json", batch=batch, sequence=sequence, memory=arguments.memory,
                                 evaluation=False, record=False, optimizer=ps.AdamW(lr=1e-4))
        return lambda: session.step(tokens, labels), before
    module = transformers.GPT2LMHeadModel._from_config(config, attn_implementation="sdpa").train()
    forward = torch.compile(module) if arguments.compile else module
    optimizer = torch.optim.AdamW(module.parameters(), 1e-4)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(forward(tokens).logits.flatten(0, 1), labels.flatten()).backward()
        optimizer.step()

    return step, before


def step_of(arguments, name):
    """What takes one step; the memory before it was made."""
    if ":" in name:
        return text_step_of(arguments, name)
    import torch
    import torchvision

    torch.manual_seed(0)
    images, labels = torch.randn(arguments.batch, 3, 224, 224), torch.randint(0, 1000, (arguments.batch,))
    built_in = name.startswith("own/")
    name = name.removeprefix("own/")
    before_module = resident_bytes("VmRSS")
    if built_in and arguments.worker == "penstock":
        import penstock as ps

        session = ps.Session(name, batch=arguments.batch, memory=arguments.memory, evaluation=False, record=False,
                             optimizer=ps.SGD(lr=0.01, momentum=0.9))
        return lambda: session.step(images, labels), before_module
    module = getattr(torchvision.models, name)()
    if arguments.worker == "penstock":
        import penstock as ps

        before = resident_bytes("VmRSS")
        session = ps.Session(module, example=(images, labels), loss="cross_entropy", memory=arguments.memory, evaluation=False,
                             record=False, optimizer=ps.SGD(lr=0.01, momentum=0.9))
        return lambda: session.step(images, labels), before
    before = before_module if built_in else resident_bytes("VmRSS")
    module, images = module.to(memory_format=torch.channels_last), images.contiguous(memory_format=torch.channels_last)
    forward = torch.compile(module) if arguments.compile else module
    optimizer = torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(forward(images), labels).backward()
        optimizer.step()

    return step, before


def work(arguments):
    """A step for each line of the input; its seconds and the peak of memory so far as a line of the output."""
    step, before = step_of(arguments, arguments.networks[0])
    for _ in sys.stdin:
        begin = time.perf_counter()
        step()
        print(time.perf_counter() - begin, resident_bytes("VmHWM") - before, flush=True)


def start(worker, name, arguments):
    command = [sys.executable, "-W", "ignore", __file__, name, "--worker", worker, "--batch", str(arguments.batch), "--memory",
               arguments.memory, *(["--compile"] if arguments.compile else [])]
    tuned = worker == "torch" and arguments.allocator == "tuned"
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env=os.environ | (TUNED if tuned else {}))


def measure(name, arguments):
    workers = [start(worker, name, arguments) for worker in ("penstock", "torch")]
    rows = [[], []]
    for _ in range(arguments.steps + 1):  # the first step of each touches memory and makes primitives, and is not counted
        for worker, row in zip(workers, rows):
            worker.stdin.write("\n")
            worker.stdin.flush()
            row.append([float(word) for word in worker.stdout.readline().split()])
    for worker in workers:
        worker.stdin.close()
        worker.wait()
    seconds = [statistics.median(step[0] for step in row[1:]) for row in rows]
    peaks = [row[-1][1] for row in rows]
    print(f"| {name} | {seconds[0]:.2f} | {seconds[1]:.2f} | {seconds[1] / seconds[0]:.2f} | {peaks[0] / 2**20:.0f} MiB | "
          f"{peaks[1] / 2**20:.0f} MiB | {peaks[0] / peaks[1]:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--memory", default="8GiB", help="Penstock's budget")
    parser.add_argument("--allocator", choices=("tuned", "default"), default="tuned", help="PyTorch's")
    parser.add_argument("--compile", action="store_true", help="PyTorch by torch.compile")
    parser.add_argument("--worker", choices=("penstock", "torch"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments)
    print("| network | Penstock, s | PyTorch, s | times as fast | Penstock's peak | PyTorch's | share |\n|---|---|---|---|---|---|---|")
    for name in arguments.networks:
        measure(name, arguments)


if __name__ == "__main__":
    main()
