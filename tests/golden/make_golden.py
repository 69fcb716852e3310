"""Makes the golden files of this folder with PyTorch and torchvision: python3 make_golden.py [MODEL ...]

For each small instance: five SGD and five Adam steps on one batch in float64. Parameters and inputs come from a hash
of (name, index) that the C++ test computes too. The same is run beside it in float32, and from parameters that are off
by a float32's rounding error, and has to agree: otherwise an activation lies so close to the kink of its ReLU that
the instance cannot be compared, and another learning rate or image size has to be chosen. Also state_dicts.json: the names and shapes of torchvision's full-size models, and
optimizers.json: single updates with each optimizer's options.
"""
import hashlib
import json
import pathlib
import sys

import numpy
import torch
import torchvision

from networks import make_network

FOLDER = pathlib.Path(__file__).parent
STEPS = 5
MOMENTUM = 0.9
WEIGHT_DECAY = 0.05  # large enough to show in five steps
LARGEST_DIFFERENCE = 2e-5  # of the runs beside; the test allows 1e-4
PERTURBATIONS = 2

INSTANCES = {
    # batch, channels, image size, classes, width, SGD's and Adam's learning rate, norms' factor and term
    "lenet": (4, 1, 28, 10, 1, 1e-3, 1e-4, 0.5, 0.5),
    "alexnet": (4, 3, 63, 7, 1 / 16, 3e-4, 5e-5, 0.5, 0.5),
    "vgg16": (4, 3, 32, 7, 1 / 16, 3e-4, 5e-5, 0.5, 0.5),
    "vgg19": (2, 3, 64, 7, 1 / 16, 2e-4, 2e-5, 0.5, 0.5),
    "resnet20": (4, 1, 28, 10, 1 / 4, 2e-3, 5e-4, 0.5, 0.5),
    "resnet18": (4, 3, 64, 7, 1 / 8, 2e-3, 1e-4, 0.5, 0.5),
    "resnet34": (4, 3, 64, 7, 1 / 16, 2e-3, 2e-4, 0.5, 0.5),
    "resnet50": (4, 3, 64, 7, 1 / 16, 1e-3, 1e-4, 0.5, 0.5),
    "resnet101": (4, 3, 64, 7, 1 / 16, 1e-3, 1e-4, 0.5, 0.5),
    "resnet152": (4, 3, 64, 7, 1 / 16, 1e-3, 1e-4, 0.3, 0.6),
    "resnet-137": (4, 3, 64, 7, 1 / 16, 1e-3, 1e-4, 0.5, 0.5),
    "densenet121": (4, 3, 64, 7, 1 / 8, 1e-3, 1e-4, 0.5, 0.5),
    "inception-v4": (4, 3, 107, 7, 1 / 16, 1e-3, 5e-5, 0.5, 0.5),
    "unet": (2, 3, 48, 3, 1 / 16, 2e-2, 1e-3, 0.5, 0.5),
    "unet3d": (2, 1, 16, 3, 1 / 16, 2e-2, 1e-3, 0.5, 0.5),
    "vit_b_16": (3, 3, 48, 7, 1 / 16, 2e-3, 2e-4, 1.0, 0.1),
}


def hashed(name, count):
    """uint32 values for elements 0 ... count - 1 of tensor `name`: FNV-1a of the name, mixed with the index."""
    start = 2166136261
    for byte in name.encode():
        start = ((start ^ byte) * 16777619) & 0xFFFFFFFF
    x = (start + numpy.arange(count, dtype=numpy.uint64) * 0x9E3779B9).astype(numpy.uint32)
    x ^= x >> 16
    x *= numpy.uint32(0x85EBCA6B)
    x ^= x >> 13
    x *= numpy.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def uniform(name, shape):
    """Values in [-1, 1), rounded to float32."""
    values = hashed(name, int(numpy.prod(shape))) / 2.0**31 - 1
    return torch.from_numpy(values.astype(numpy.float32).reshape(shape))


def fill(model, factor, term):
    """Matrices and kernels keep the size of activations. Norms' factors are near `factor`, their terms (and all biases)
    near `term`: most ReLUs pass, which keeps deep networks from magnifying rounding errors."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            values = uniform(name, tuple(p.shape))
            if p.dim() > 1:
                values = values * numpy.float32(numpy.sqrt(6 / p[0].numel()))
            else:
                values = values * numpy.float32(0.1) + numpy.float32(factor if name.endswith(".weight") else term)
            p.copy_(values)


def state(model):
    return {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}


def perturb(model, seed):
    torch.manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1 + 3e-7 * torch.randn_like(p))


def train(name, instance, kind, dtype, seed=None):
    batch, channels, image, classes, width, sgd_rate, adam_rate, factor, term = instance
    model = make_network(name, channels, image, classes, width)
    fill(model, factor, term)
    model = model.to(dtype).train()
    if seed is not None:
        perturb(model, seed)
    axes = 3 if name == "unet3d" else 2
    images = uniform("images", (batch, channels) + (image,) * axes).to(dtype)
    label_shape = (batch,) + ((image,) * axes if name.startswith("unet") else ())
    labels = torch.from_numpy((hashed("labels", int(numpy.prod(label_shape))) % classes).astype(numpy.int64))
    labels = labels.reshape(label_shape)
    if kind == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), sgd_rate, MOMENTUM, weight_decay=WEIGHT_DECAY)
    else:
        optimizer = torch.optim.Adam(model.parameters(), adam_rate, weight_decay=WEIGHT_DECAY)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    evaluation = torch.nn.functional.cross_entropy(model.eval()(images), labels).item()
    return losses + [evaluation], {k: checksum(v.detach().double().flatten()) for k, v in state(model).items()}


def checksum(values):
    """Sum, sum of absolute values, the middle element."""
    return [values.sum().item(), values.abs().sum().item(), values[len(values) // 2].item()]


def difference(a, b):
    """Largest relative difference of two runs in losses and in checksums; a sum is compared with the sum of absolute
    values."""
    losses = max(abs(x - y) / abs(x) for x, y in zip(a[0], b[0]))
    sums = max(max(abs(x[0] - y[0]), abs(x[1] - y[1])) / x[1] for x, y in zip(a[1].values(), b[1].values()))
    return losses, sums


def rounded(values):
    return [float(f"{v:.7g}") for v in values]


def make(name):
    instance = INSTANCES[name]
    runs = {}
    for kind in ("sgd", "adam"):
        exact = train(name, instance, kind, torch.float64)
        others = [train(name, instance, kind, torch.float32)]
        others += [train(name, instance, kind, torch.float64, seed) for seed in range(PERTURBATIONS)]
        losses, sums = (max(values) for values in zip(*(difference(exact, other) for other in others)))
        print(f"{name:14} {kind:5} others differ by {losses:.1e} in losses, {sums:.1e} in state;",
              " ".join(f"{x:.4f}" for x in exact[0]), flush=True)
        if max(losses, sums) > LARGEST_DIFFERENCE:
            sys.exit(f"{name}: too sensitive")
        runs[kind] = exact
    keys = ("batch", "channels", "image_size", "classes", "width", "sgd_rate", "adam_rate", "norm_factor", "norm_term")
    golden = dict(zip(keys, instance))
    # Five losses of training, and that of the trained network in evaluation.
    golden["losses"] = {kind: rounded(run[0]) for kind, run in runs.items()}
    lines = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in golden.items()]
    states = [f"    {json.dumps(k)}: {json.dumps(rounded(runs['sgd'][1][k] + runs['adam'][1][k]))}"
              for k in runs["sgd"][1]]
    lines.append('  "state": {\n' + ",\n".join(states) + "\n  }")
    (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def make_state_dicts():
    """Count and SHA-256 of the sorted lines "NAME [EXTENTS]\\n" of torchvision's models."""
    digests = {}
    for name in ("alexnet", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
                 "resnet-1001", "densenet121", "vit_b_16", "vit_l_16"):
        with torch.device("meta"):
            if name == "resnet-1001":
                model = torchvision.models.ResNet(torchvision.models.resnet.Bottleneck, [6, 32, 289, 6])
            else:
                model = getattr(torchvision.models, name)()
        lines = sorted(f"{k} {list(v.shape)}\n" for k, v in state(model).items())
        digests[name] = {"count": len(lines), "sha256": hashlib.sha256("".join(lines).encode()).hexdigest()}
    (FOLDER / "state_dicts.json").write_text(json.dumps(digests, indent=1) + "\n")


OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {}),
    "sgd with weight decay": (torch.optim.SGD, {"weight_decay": 0.1}),
    "sgd with momentum": (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
    "sgd with Nesterov": (torch.optim.SGD, {"momentum": 0.8, "weight_decay": 0.1, "nesterov": True}),
    "adam": (torch.optim.Adam, {}),
    "adam with weight decay": (torch.optim.Adam, {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
    "adamw with betas": (torch.optim.AdamW, {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2}),
}


def make_optimizers():
    """A parameter [2, 3] behind each of five updates; the gradient of step t is uniform("gradient t")."""
    results = {}
    for name, (optimizer, options) in OPTIMIZERS.items():
        parameter = uniform("parameter", (2, 3)).double().requires_grad_()
        rule = optimizer([parameter], lr=0.1, **options)
        results[name] = []
        for step in range(STEPS):
            parameter.grad = uniform(f"gradient {step}", (2, 3)).double()
            rule.step()
            results[name].append(rounded(parameter.detach().flatten().tolist()))
    lines = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in results.items()]
    (FOLDER / "optimizers.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    make_state_dicts()
    make_optimizers()
    for model_name in sys.argv[1:] or INSTANCES:
        make(model_name)
