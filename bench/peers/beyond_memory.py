"""A GPT-2 whose state does not fit: Penstock under a budget, and what PyTorch's users do, each in a memory cgroup of that size.

The kernel's swap; parameters, gradients and Adam's moments in memory-mapped files; DeepSpeed's ZeRO-Infinity, with optimizer state and
parameters on the disk. All train the same network without dropout on the same number of tokens with AdamW. The speed is that of
the best step after the first, the peak what the cgroup counted, which has the page cache in it. Root and a cgroup file system (v1) are
needed. transformers is needed too, and deepspeed with ninja, libaio and a compiler for the last; where it does not run, the reason is told.

usage: PYTHON bench/peers/beyond_memory.py --penstock PENSTOCK [--model gpt2-medium] [--sequence 512] [--memory 2GiB] [--steps 3]
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import cgroups

SIZES = {"gpt2": (12, 12, 768), "gpt2-medium": (24, 16, 1024), "gpt2-large": (36, 20, 1280), "gpt2-xl": (48, 25, 1600)}
VOCABULARY = 50257


def run_in(group, command, options):
    """Peak bytes and what the command printed, or why it ended."""
    try:
        done = subprocess.run([*cgroups.entering(group), *command], capture_output=True, text=True, timeout=options.timeout,
                              env=os.environ | {"DS_ACCELERATOR": "cpu"})
    except subprocess.TimeoutExpired:
        return {"why": f"no {options.steps} steps in {options.timeout:.0f} s"}
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return {"why": "killed for want of memory" if done.returncode in (-9, 137) else lines[-1][:200] if lines else "failed"}
    return {"peak": cgroups.peak_bytes(group), "out": done.stdout}


def config_of(model):
    layers, heads, width = SIZES[model]
    return {"n_layer": layers, "n_head": heads, "n_embd": width, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}


def penstock(options, folder, group):
    path, config = pathlib.Path(folder) / "result.json", pathlib.Path(folder) / "config.json"
    config.write_text(json.dumps({"model_type": "gpt2", "n_positions": 1024, "vocab_size": VOCABULARY, **config_of(options.model)}))
    result = run_in(group, [options.penstock, "train", str(config), "--batch", "1", "--sequence", str(options.sequence),
                            "--optimizer", "adamw", "--lr", "1e-5", "--steps", str(options.steps), "--memory", options.memory,
                            "--swap-dir", folder, "--quiet", "--json", str(path)], options)
    if "why" not in result:
        result["seconds"] = min(json.loads(path.read_text())["step_seconds"][1:])
    return result


def torch_by(mode, options, folder, group):
    command = [sys.executable, "-W", "ignore", __file__, "--worker", mode, "--folder", folder, "--model", options.model, "--sequence",
               str(options.sequence), "--steps", str(options.steps)]
    swap = cgroups.swap_file(folder, 24) if mode == "swap" else contextlib.nullcontext()
    with swap:
        result = run_in(group, command, options)
    if "why" not in result:
        result["seconds"] = min(json.loads(result["out"].splitlines()[-1])[1:])
    return result


def mapped(folder, name, count):
    import torch

    return torch.from_file(str(pathlib.Path(folder) / name), shared=True, size=count, dtype=torch.float32)


def map_state(model, optimizer, folder):
    """Parameters, gradients and moments become views of files, which the kernel writes out and reads in as it likes."""
    import torch

    for i, parameter in enumerate(model.parameters()):
        count = parameter.numel()
        data = mapped(folder, f"{i}.weight", count).view_as(parameter)
        data.copy_(parameter.data)
        parameter.data = data
        parameter.grad = mapped(folder, f"{i}.gradient", count).view_as(parameter)
        optimizer.state[parameter] = {"step": torch.tensor(0.0), "exp_avg": mapped(folder, f"{i}.first", count).view_as(parameter),
                                      "exp_avg_sq": mapped(folder, f"{i}.second", count).view_as(parameter)}


def deepspeed_step(make_model, folder):
    """The model is made below zero.Init(), a layer at a time, so that it is never whole in memory."""
    import deepspeed

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    on_disk = {"device": "nvme", "nvme_path": folder, "pin_memory": False}
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
        "zero_optimization": {"stage": 3, "offload_optimizer": on_disk, "offload_param": {**on_disk, "buffer_size": 60_000_000},
                              "sub_group_size": 20_000_000, "reduce_bucket_size": 20_000_000,
                              "stage3_prefetch_bucket_size": 20_000_000, "stage3_max_live_parameters": 60_000_000},
        "aio": {"block_size": 1048576, "queue_depth": 16, "thread_count": 1, "single_submit": False, "overlap_events": True}}
    deepspeed.init_distributed("gloo")
    with deepspeed.zero.Init(config_dict_or_path=config, remote_device="nvme"):
        model = make_model()
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)

    def step(loss_of):
        loss = loss_of(engine)
        engine.backward(loss)
        engine.step()

    return step


def work(options):
    import torch
    import torch._dynamo  # noqa: F401: zero.Init() replaces what it looks at when it is imported
    import transformers

    model_class = transformers.GPT2LMHeadModel
    config = transformers.GPT2Config(**config_of(options.model), use_cache=False)
    rows = torch.randint(0, VOCABULARY, (1, options.sequence + 1))

    def make_model():
        return model_class._from_config(config, attn_implementation="sdpa").train()

    def loss_of(module):
        return torch.nn.functional.cross_entropy(module(rows[:, :-1]).logits.flatten(0, 1), rows[:, 1:].flatten())

    if options.worker == "deepspeed":
        step = deepspeed_step(make_model, options.folder)
    else:
        model = make_model()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-5, foreach=False)
        if options.worker == "mapped":
            map_state(model, optimizer, options.folder)

        def step(loss_of):
            optimizer.zero_grad(set_to_none=options.worker != "mapped")
            loss_of(model).backward()
            optimizer.step()

    seconds = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        step(loss_of)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps(seconds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--penstock")
    parser.add_argument("--model", choices=SIZES, default="gpt2-medium")
    parser.add_argument("--sequence", type=int, default=512)
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=1200, help="seconds that each gets")
    parser.add_argument("--ways", default="penstock,swap,mapped,deepspeed")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--worker", choices=("swap", "mapped", "deepspeed"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options)
    print(f"{options.model}, 1 x {options.sequence} tokens a step, AdamW, a cgroup of {options.memory}\n")
    print("| | tokens/s | seconds a step | peak of the cgroup |\n|---|---|---|---|")
    for way in options.ways.split(","):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder, cgroups.cgroup(cgroups.bytes_of(options.memory)) as group:
            result = penstock(options, folder, group) if way == "penstock" else torch_by(way, options, folder, group)
        if "why" in result:
            print(f"| {way} | {result['why']} | | |", flush=True)
        else:
            print(f"| {way} | {options.sequence / result['seconds']:.1f} | {result['seconds']:.1f} | {result['peak'] / 2**20:.0f} MiB |",
                  flush=True)


if __name__ == "__main__":
    main()
