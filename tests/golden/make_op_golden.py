"""Makes ops.json, what PyTorch makes of the op cases of tests/kernels/: python3 make_op_golden.py CASES.json

CASES.json is written by `kernels_tests --gtest_also_run_disabled_tests --gtest_filter='*WriteCases'` into the build
folder. Of each output and gradient the golden file holds two numbers: the sum of its elements times cos(i + 1), and the
sum of their absolute values. Everything is computed in float64.
"""
import json
import pathlib
import sys

import torch
import torch.nn.functional as F

import text_ops

LEARNING_RATE = 0.1  # of run_case.cpp
STEP = 2


def by_axes(name, x):
    return getattr(F, f"{name}{x.dim() - 2}d")


def one_sided(begin, end):
    """F.pad's order: the last axis first."""
    return [side for pair in reversed(list(zip(begin, end))) for side in pair]


def maybe_relu(y, attrs):
    return torch.relu(y) if attrs["relu"] else y


def conv(a, x, w, b=None):
    x = F.pad(x, one_sided(a["padding_begin"], a["padding_end"]))
    return maybe_relu(by_axes("conv", x)(x, w, b, a["stride"], 0, a["dilation"], a["groups"]), a)


def conv_transpose(a, x, w, b=None):
    return by_axes("conv_transpose", x)(x, w, b, a["stride"], a["padding_begin"], a["output_padding"] or 0, a["groups"],
                                        a["dilation"])


def matmul(a, left, right):
    left = left.mT if a["transpose_a"] else left
    right = right.mT if a["transpose_b"] else right
    return a["scale"] * (left @ right)


def batch_norm(a, x, gamma, beta, *rest):
    rest = list(rest)
    z = rest.pop() if a["add"] else 0
    mean, variance = rest if rest else (None, None)
    y = F.batch_norm(x, mean, variance, gamma, beta, mean is None, 0, a["epsilon"])
    if a["silu"]:
        return F.silu(y)
    return F.hardtanh(y + z, 0, a["ceiling"]) if a["ceiling"] else maybe_relu(y + z, a)


def statistics_update(a, running_mean, running_variance, mean, variance):
    momentum = a["momentum"]
    return ((1 - momentum) * running_mean + momentum * mean,
            (1 - momentum) * running_variance + momentum * variance * a["count"] / (a["count"] - 1))


def activation(a, x):
    functions = {"relu": F.relu, "leaky_relu": lambda x: F.leaky_relu(x, a["alpha"]), "gelu": F.gelu,
                 "sigmoid": torch.sigmoid, "tanh": torch.tanh}
    return functions[a["function"]](x)


def max_pool(a, x):
    x = F.pad(x, one_sided(a["padding_begin"], a["padding_end"]), value=-1e300)
    return by_axes("max_pool", x)(x, a["kernel"], a["stride"])


def avg_pool(a, x):
    if a["padding_begin"] == a["padding_end"]:
        return by_axes("avg_pool", x)(x, a["kernel"], a["stride"], a["padding_begin"], False, a["count_include_pad"])
    assert a["count_include_pad"]
    return by_axes("avg_pool", x)(F.pad(x, one_sided(a["padding_begin"], a["padding_end"])), a["kernel"], a["stride"])


def upsample(a, x):
    factor = [float(f) for f in a["factor"]]
    if not a["bilinear"]:
        return F.interpolate(x, scale_factor=factor, mode="nearest")
    return F.interpolate(x, scale_factor=factor, mode=["linear", "bilinear", "trilinear"][x.dim() - 3],
                         align_corners=False)


def crop(a, x):
    return x[tuple(slice(b, n - e) for b, e, n in zip(a["begin"], a["end"], x.shape))]


def scaled(a, gradient, state):
    """The gradient as the update takes it, and the state without the factor behind it."""
    gradient = gradient * a["gradient_scale"]
    return (gradient * state[-1], state[:-1]) if a["clipped"] else (gradient, state)


def sgd(a, p, gradient, *state):
    gradient, state = scaled(a, gradient, state)
    buffer = state[0] if state else None
    p = torch.nn.Parameter(p.clone())
    p.grad = gradient.clone()
    optimizer = torch.optim.SGD([p], LEARNING_RATE, a["momentum"], weight_decay=a["weight_decay"],
                                nesterov=a["nesterov"])
    if buffer is not None:
        optimizer.state[p] = {"momentum_buffer": buffer.clone()}
    optimizer.step()
    return [p.detach()] + ([optimizer.state[p]["momentum_buffer"]] if buffer is not None else [])


def adam(a, p, gradient, *state):
    gradient, (first, second) = scaled(a, gradient, state)
    p = torch.nn.Parameter(p.clone())
    p.grad = gradient.clone()
    make = torch.optim.AdamW if a["decoupled"] else torch.optim.Adam
    optimizer = make([p], LEARNING_RATE, (a["beta1"], a["beta2"]), a["epsilon"], a["weight_decay"])
    optimizer.state[p] = {"step": torch.tensor(float(STEP)), "exp_avg": first.clone(), "exp_avg_sq": second.clone()}
    optimizer.step()
    state = optimizer.state[p]
    return p.detach(), state["exp_avg"], state["exp_avg_sq"]


# Attributes, inputs, the shapes of the outputs where the case gives them.
OPS = {
    "conv": lambda a, x, s: conv(a, *x),
    "conv_transpose": lambda a, x, s: conv_transpose(a, *x),

    "matmul": lambda a, x, s: matmul(a, *x),
    "bias": lambda a, x, s: x[0] + x[1].reshape([1, -1] + [1] * (x[0].dim() - 2)),
    "batch_norm": lambda a, x, s: batch_norm(a, *x),
    "statistics_update": lambda a, x, s: statistics_update(a, *x),
    "lrn": lambda a, x, s: F.local_response_norm(x[0], a["size"], a["alpha"], a["beta"], a["k"]),
    "activation": lambda a, x, s: activation(a, *x),
    "max_pool": lambda a, x, s: max_pool(a, *x),
    "avg_pool": lambda a, x, s: avg_pool(a, *x),
    "global_avg_pool": lambda a, x, s: by_axes("adaptive_avg_pool", x[0])(x[0], 1),
    "upsample": lambda a, x, s: upsample(a, *x),
    "add": lambda a, x, s: x[0] + x[1],
    "multiply": lambda a, x, s: x[0] * x[1],
    "concat": lambda a, x, s: torch.cat(x, a["axis"]),
    "split": lambda a, x, s: torch.split(x[0], [shape[a["axis"]] for shape in s], a["axis"]),
    "pad": lambda a, x, s: F.pad(x[0], one_sided(a["begin"], a["end"]), value=a["value"]),
    "crop": lambda a, x, s: crop(a, *x),
    "reshape": lambda a, x, s: x[0].reshape(s[0]),
    "transpose": lambda a, x, s: x[0].permute(a["order"]),
    "softmax": lambda a, x, s: F.softmax(x[0], a["axis"]),
    "cross_entropy": lambda a, x, s: F.cross_entropy(x[0], x[1].long()).reshape(1),
    "count_correct": lambda a, x, s: (x[0].argmax(1) == x[1]).sum().reshape(1),
    "sgd_update": lambda a, x, s: sgd(a, *x),
    "adam_update": lambda a, x, s: adam(a, *x),
}
OPS |= text_ops.OPS
UNKNOWN_TO_PYTORCH = {"input", "reorder", "dropout"}


def summary(tensor):
    values = tensor.detach().double().reshape(-1)
    weights = torch.cos(torch.arange(1, values.numel() + 1, dtype=torch.float64))
    return [float(f"{number:.9g}") for number in ((values * weights).sum(), values.abs().sum())]


def golden(case):
    inputs = [torch.tensor(i["values"]).reshape(i["shape"]).requires_grad_(i["gradient"] != "") for i in case["inputs"]]
    outputs = OPS[case["kind"]](case["attrs"], inputs, case["output_shapes"])
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    result = {f"output{i}": summary(output) for i, output in enumerate(outputs)}
    if any(x.requires_grad for x in inputs):
        seeds = [torch.tensor(seed) for seed in case["seeds"]] or [torch.ones(1)]
        seeded = [outputs[int(name.removeprefix("output"))] for name in case["seeded"]] or outputs
        sum((y.reshape(-1) * seed).sum() for y, seed in zip(seeded, seeds)).backward()
        result |= {i["gradient"]: summary(x.grad) for i, x in zip(case["inputs"], inputs) if x.requires_grad}
    return result


def main():
    torch.set_default_dtype(torch.float64)
    cases = json.load(open(sys.argv[1]))
    results = {case["name"]: golden(case) for case in cases
               if case["kind"] not in UNKNOWN_TO_PYTORCH and not case["attrs"].get("dropout")}
    lines = [f" {json.dumps(name)}: {json.dumps(result)}" for name, result in results.items()]
    path = pathlib.Path(__file__).parent / "ops.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{path}: {len(results)} cases")


main()
