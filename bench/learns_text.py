"""The demo's network on the demo's text, in Penstock within a budget and in PyTorch: the same tokens in the same order, the same
initial weights, no dropout. Prints both loss curves and how far they are apart.

usage: PYTHON bench/learns_text.py PENSTOCK [--steps 200] [--memory 64MiB]
PYTHON has torch, transformers and numpy (`make test-torch` sets up such an environment in build/torch-venv).
"""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

SEQUENCE, LAYERS, HEADS, WIDTH = 128, 4, 4, 128
BETAS, DECAY, NORM = (0.9, 0.99), 0.1, 1.0


def text_bytes():
    """As examples/demo_text.sh puts the text together."""
    names = "computers definitions literature science songs-poems wisdom work"
    return b"".join(pathlib.Path("/usr/share/games/fortunes", name).read_bytes() for name in names.split())


def rate_at(step, steps, warmup, base):
    rate = base * 0.5 * (1 + math.cos(math.pi * max(0, step - warmup) / (steps - warmup)))
    return rate * min(1, (step + 1) / warmup)


def torch_curve(model, tokens, given):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
                                  lr=given.lr, betas=BETAS)
    losses = []
    for step in range(given.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, given.steps, given.warmup, given.lr)
        first = np.arange(step * given.batch, (step + 1) * given.batch) * SEQUENCE
        rows = torch.from_numpy(np.stack([tokens[i:i + SEQUENCE + 1] for i in first]).astype(np.int64))
        logits = model(rows[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), NORM)
        optimizer.step()
        losses.append(loss.item())
    return losses


def penstock_curve(given, folder):
    result = folder / "result.json"
    subprocess.run([given.penstock, "train", str(folder), "--init", str(folder), "--data", f"tokens:{folder}/tokens.bin",
                    "--sequence", str(SEQUENCE), "--shuffle", "off", "--batch", str(given.batch), "--accumulate", "2",
                    "--steps", str(given.steps), "--optimizer", "adamw", "--lr", str(given.lr), "--betas",
                    ",".join(map(str, BETAS)), "--weight-decay", str(DECAY), "--decay", "matrices", "--clip", str(NORM),
                    "--schedule", f"cosine,warmup:{given.warmup}", "--memory", given.memory, "--quiet", "--json", str(result)],
                   check=True)
    return json.loads(result.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("penstock")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--memory", default="64MiB")
    given = parser.parse_args()
    torch.manual_seed(0)
    config = GPT2Config(n_layer=LAYERS, n_head=HEADS, n_embd=WIDTH, n_positions=SEQUENCE, vocab_size=256, resid_pdrop=0,
                        embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None)
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model.save_pretrained(folder)
        tokens = np.frombuffer(text_bytes(), np.uint8).astype(np.uint16)
        tokens.tofile(folder / "tokens.bin")
        ours = penstock_curve(given, folder)
    theirs = torch_curve(model, tokens, given)
    apart = [abs(a / b - 1) for a, b in zip(ours["loss"], theirs)]
    print(f"{'step':>6} {'Penstock':>10} {'PyTorch':>10} {'apart':>8}")
    for step in sorted({*range(0, given.steps, max(1, given.steps // 10)), given.steps - 1}):
        print(f"{step + 1:>6} {ours['loss'][step]:>10.4f} {theirs[step]:>10.4f} {100 * apart[step]:>6.2f} %")
    print(f"the largest difference of a step is {100 * max(apart):.2f} %; Penstock's peak was {ours['peak_rss_bytes'] / 2**20:.0f} "
          f"MiB of a budget of {given.memory}")


if __name__ == "__main__":
    main()
