"""Writes tests/golden/functions.txt: values and gradients of named functions by PyTorch in float64.

Each line: name, number of parameters, parameters, inputs, value, gradient of each input.
"""
import pathlib

import torch
import torch.nn.functional as F

UNARY = {
    "relu": (F.relu, []), "relu6": (F.relu6, []), "hardtanh": (F.hardtanh, [-0.5, 0.75]), "leaky_relu": (F.leaky_relu, [0.125]),
    "elu": (F.elu, [1.5]), "celu": (F.celu, [1.25]), "selu": (F.selu, []), "gelu": (F.gelu, []),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), []), "silu": (F.silu, []), "hardsigmoid": (F.hardsigmoid, []),
    "hardswish": (F.hardswish, []), "softplus": (F.softplus, [2.0, 5.0]), "mish": (F.mish, []), "logsigmoid": (F.logsigmoid, []),
    "softsign": (F.softsign, []), "tanhshrink": (F.tanhshrink, []), "softshrink": (F.softshrink, [0.5]),
    "hardshrink": (F.hardshrink, [0.5]), "threshold": (F.threshold, [0.25, 2.0]), "neg": (torch.neg, []), "abs": (torch.abs, []),
    "sign": (torch.sign, []), "floor": (torch.floor, []), "ceil": (torch.ceil, []), "round": (torch.round, []),
    "trunc": (torch.trunc, []), "exp": (torch.exp, []), "expm1": (torch.expm1, []), "erf": (torch.erf, []),
    "sigmoid": (torch.sigmoid, []), "tanh": (torch.tanh, []), "sin": (torch.sin, []), "cos": (torch.cos, []), "tan": (torch.tan, []),
    "atan": (torch.atan, []), "sinh": (torch.sinh, []), "cosh": (torch.cosh, []), "asinh": (torch.asinh, []),
    "square": (torch.square, []), "clip": (torch.clamp, [-0.5, 1.25]), "add_scalar": (torch.add, [1.5]), "mul_scalar": (torch.mul, [1.5]),
    "div_scalar": (torch.div, [1.5]), "rsub_scalar": (lambda x, c: c - x, [1.5]), "rdiv_scalar": (lambda x, c: c / x, [1.5]),
}
POSITIVE = {
    "sqrt": (torch.sqrt, []), "rsqrt": (torch.rsqrt, []), "reciprocal": (torch.reciprocal, []), "log": (torch.log, []),
    "log1p": (torch.log1p, []), "pow_scalar": (torch.pow, [2.5]),
}
WITHIN_ONE = {"asin": (torch.asin, []), "acos": (torch.acos, []), "atanh": (torch.atanh, [])}
ABOVE_ONE = {"acosh": (torch.acosh, [])}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "minimum": torch.minimum, "maximum": torch.maximum,
          "remainder": torch.remainder, "prelu": lambda x, w: torch.where(x > 0, x, x * w)}
POINTS = [-7.3, -3.4, -1.7, -0.9, -0.3, 0.0, 0.2, 0.6, 1.1, 2.9, 4.2, 8.5]


def lines(functions, points):
    for name, (function, parameters) in functions.items():
        for point in points:
            x = torch.tensor(point, dtype=torch.float64, requires_grad=True)
            if point == 0.0 and name == "rdiv_scalar":
                continue
            y = function(x, *parameters)
            (gradient,) = torch.autograd.grad(y, x)
            yield [name, len(parameters), *parameters, point, y.item(), gradient.item()]


def binary_lines():
    for name, function in BINARY.items():
        for a, b in [(1.5, 2.5), (-1.5, 0.5), (2.25, -0.75), (-3.5, -1.25), (0.5, 0.5)]:
            x, z = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (a, b))
            y = function(x, z)
            gradients = torch.autograd.grad(y, (x, z))
            yield [name, 0, a, b, y.item(), *(g.item() for g in gradients)]
    for a, b in [(1.5, 2.5), (0.5, -1.5), (2.0, 3.0), (0.0, 2.0)]:
        x, z = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (a, b))
        y = torch.pow(x, z)
        gradients = torch.autograd.grad(y, (x, z))
        yield ["pow", 0, a, b, y.item(), *(g.item() for g in gradients)]


def main():
    rows = [*lines(UNARY, POINTS), *lines(POSITIVE, [0.1, 0.7, 1.3, 5.5]), *lines(WITHIN_ONE, [-0.8, -0.1, 0.3, 0.9]),
            *lines(ABOVE_ONE, [1.2, 3.4]), *binary_lines()]
    text = "".join(" ".join(str(word) for word in row) + "\n" for row in rows)
    pathlib.Path(__file__).with_name("functions.txt").write_text(text)


main()
