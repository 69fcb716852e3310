"""Trains one model in PyTorch on fixed random data and prints what it took as one line of JSON."""
import argparse
import contextlib
import json
import pathlib
import sys
import time

import torch
import torch._functorch.config

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"))


def build(name):
    if name == "unet":
        import networks

        return networks.make_network("unet", 3, 224, 2, 1.0), True
    import torchvision

    return getattr(torchvision.models, name)(), False


def peak_rss_bytes():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def checkpoint_blocks(model):
    """Wraps every residual block, so that only block inputs are kept and the rest is computed again."""
    from torch.utils.checkpoint import checkpoint

    for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
        for block in stage:
            inner = block.forward
            block.forward = lambda x, inner=inner: checkpoint(inner, x, use_reentrant=False)


class SavedToDisk:
    """Hooks that write what autograd saves to files and read it back; small tensors and parameters stay."""

    def __init__(self, folder, model):
        self.folder = folder
        self.count = 0
        self.parameters = {parameter.data_ptr() for parameter in model.parameters()}

    def pack(self, tensor):
        if tensor.numel() < 65536 or tensor.data_ptr() in self.parameters:
            return tensor
        self.count += 1
        path = pathlib.Path(self.folder) / f"{self.count}.bin"
        torch.save(tensor, path)
        return path

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        tensor = torch.load(packed)
        packed.unlink()
        return tensor


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mode", choices=["eager", "compile", "checkpoint", "budget", "hooks"], default="eager")
    parser.add_argument("--activation-budget", type=float, default=0.5, help="share of activations that `budget` keeps")
    parser.add_argument("--progress", action="store_true", help="show each step as it ends")
    parser.add_argument("--folder", default=".", help="where `hooks` writes")
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    model, per_pixel = build(options.model)
    model = model.to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    size = options.image_size
    channels = next(model.parameters()).shape[1]
    images = torch.randn(options.batch, channels, size, size).contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        model.eval()
        classes = model(images[:1]).shape[1]
        model.train()
    labels = torch.randint(0, classes, (options.batch, size, size) if per_pixel else (options.batch,))
    if options.mode == "checkpoint":
        checkpoint_blocks(model)
    if options.mode == "budget":
        torch._functorch.config.activation_memory_budget = options.activation_budget
    forward = torch.compile(model) if options.mode in ("compile", "budget") else model
    saved = contextlib.nullcontext()
    if options.mode == "hooks":
        to_disk = SavedToDisk(options.folder, model)
        saved = torch.autograd.graph.saved_tensors_hooks(to_disk.pack, to_disk.unpack)

    seconds = []
    for step in range(options.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with saved:
            loss = torch.nn.functional.cross_entropy(forward(images), labels)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
        if options.progress:
            print(f"step {step + 1}/{options.steps}", flush=True)
    print(json.dumps({"step_seconds": seconds, "peak_rss_bytes": peak_rss_bytes(), "loss": loss.item()}))


main()
