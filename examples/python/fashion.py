"""Trains a torchvision network on Fashion-MNIST in a quarter of the memory that PyTorch takes, and loads the weights back.

usage: python fashion.py [--steps 40] [--batch 256] [--size 64] [--data DIR]
"""

import argparse
import gzip
import os
import subprocess
import sys

import numpy as np
import penstock as ps
import torch
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="the folder with the .gz files")
parser.add_argument("--torch-peak", action="store_true", help="only measure what PyTorch takes, and print it")
arguments = parser.parse_args()


def read(name, offset, shape):
    with gzip.open(os.path.join(arguments.data, name)) as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset).reshape(shape)


def batches():
    images = read("train-images-idx3-ubyte.gz", 16, (-1, 28, 28))
    labels = read("train-labels-idx1-ubyte.gz", 8, -1)
    for first in range(0, len(labels), arguments.batch):
        some = torch.from_numpy(images[first:first + arguments.batch].copy())[:, None].float() / 255
        if len(some) == arguments.batch:
            yield (torch.nn.functional.interpolate(some, arguments.size).expand(-1, 3, -1, -1).contiguous(),
                   torch.from_numpy(labels[first:first + arguments.batch].astype(np.int64)))


def resident_bytes(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


torch.manual_seed(0)
module = torchvision.models.resnet18(num_classes=10)
loader = batches()
example = next(loader)

if arguments.torch_peak:
    torch.set_num_threads(2)
    before, optimizer = resident_bytes("VmRSS"), torch.optim.SGD(module.parameters(), 0.05, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(example[0]), example[1]).backward()
        optimizer.step()
    print(resident_bytes("VmHWM") - before)
    sys.exit()

taken = int(subprocess.run([sys.executable, *sys.argv, "--torch-peak"], capture_output=True, text=True, check=True).stdout)
print(f"PyTorch takes {taken / 2**20:.0f} MiB for these steps")
session = ps.Session(module, example=example, loss="cross_entropy", memory=taken // 4,
                     optimizer=ps.SGD(lr=0.05, momentum=0.9))
print(session.plan)
losses = []
for step, (images, labels) in zip(range(arguments.steps), loader):
    losses.append(session.step(images, labels))
    print(f"step {step + 1}/{arguments.steps}  loss {losses[-1]:.4f}")
module.load_state_dict(session.state_dict())
module.eval()  # by batch norm's running statistics, which lag some ten steps behind: 12 steps are too few, in PyTorch too
with torch.no_grad():
    right = (module(images).argmax(1) == labels).float().mean()
print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}; the module names {100 * right:.0f} % of the last batch, trained in "
      f"{session.plan.peak_bytes / 2**20:.0f} MiB, {session.plan.peak_bytes / taken:.2f} of what PyTorch takes")
