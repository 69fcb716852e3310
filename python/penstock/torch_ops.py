"""The ops of PyTorch that Penstock has: one row each, from aten's arguments to calls of the network builder."""

import math

import torch


class Refused(Exception):
    """A row cannot do what these arguments ask for."""


OPS = {}
# Ops whose result shares memory with their first argument.
VIEWS = {"aten.view.default", "aten.reshape.default", "aten.flatten.using_ints", "aten.permute.default", "aten.transpose.int",
         "aten.swapaxes.default", "aten.swapdims.default", "aten.t.default", "aten.slice.Tensor", "aten.select.int", "aten.unsqueeze.default", "aten.squeeze.dim",
         "aten.expand.default", "aten.unflatten.int", "aten.detach.default", "aten.contiguous.default", "aten.alias.default"}
# Ops that draw; computed while the module is read they would give the same in every step.
RANDOM = ("rand", "randn", "rand_like", "randn_like", "bernoulli", "normal", "uniform", "multinomial", "exponential", "randperm",
          "randint")


def op(*names):
    def add(row):
        for name in names:
            OPS[name] = row
        return row

    return add


def _axis(im, x, axis):
    rank = len(im.shape(x))
    return axis + rank if axis < 0 else axis


def _pair(numbers, count):
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * count if len(numbers) == 1 else numbers


# Sums of products.


@op("aten.conv2d.default", "aten.conv1d.default", "aten.conv3d.default", "aten.conv2d.padding", "aten.conv1d.padding")
def conv(im, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    spatial = len(im.shape(weight)) - 2
    if padding == "valid":
        padding = 0
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(_pair(dilation, spatial), im.shape(weight)[2:])]
        begin, end = [t // 2 for t in totals], [t - t // 2 for t in totals]
    else:
        begin = end = _pair(padding, spatial)
    return im.net.conv_with(im.value(x), im.value(weight), None if bias is None else im.value(bias), _pair(stride, spatial),
                            begin, end, _pair(dilation, spatial), groups)


@op("aten.conv_transpose2d.input", "aten.conv_transpose1d.default", "aten.conv_transpose3d.input")
def conv_transpose(im, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    spatial = len(im.shape(weight)) - 2
    return im.net.conv_transpose_with(im.value(x), im.value(weight), None if bias is None else im.value(bias),
                                      _pair(stride, spatial), _pair(padding, spatial), _pair(output_padding, spatial),
                                      _pair(dilation, spatial), groups)


@op("aten.linear.default")
def linear(im, x, weight, bias=None):
    return im.net.linear_with(im.value(x), im.value(weight), None if bias is None else im.value(bias))


@op("aten.addmm.default")
def addmm(im, bias, x, weight, beta=1, alpha=1):
    if beta != 1 or alpha != 1:
        raise Refused("beta and alpha other than 1 are not known")
    return im.net.linear_with(im.value(x), im.value(weight), im.value(bias), turned=True)


@op("aten.matmul.default", "aten.mm.default", "aten.bmm.default")
def matmul(im, a, b):
    return im.net.matmul(im.value(a), im.value(b))


@op("aten.einsum.default")
def einsum(im, equation, operands, path=None):
    """Of two operands: axes in order of batch, own, summed, then one product of matrices."""
    given, _, out = equation.replace(" ", "").partition("->")
    names = given.split(",")
    if len(operands) != 2 or "." in equation or any(len(set(each)) != len(each) for each in [*names, out]):
        raise Refused(f"the einsum '{equation}' is not known; write it with matmul")
    shared = [axis for axis in names[0] if axis in names[1]]
    batch, summed = [x for x in shared if x in out], [x for x in shared if x not in out]
    own = [[x for x in each if x not in shared] for each in names]
    if any(x not in out for x in own[0] + own[1]):
        raise Refused(f"the einsum '{equation}' is not known; write it with matmul")
    extents = {x: n for each, operand in zip(names, operands) for x, n in zip(each, im.shape(operand))}

    def arranged(name, operand, groups):
        turned = im.net.transpose(im.value(operand), [name.index(x) for group in groups for x in group])
        return im.net.reshape(turned, [extents[x] for x in batch] + [math.prod(extents[x] for x in g) for g in groups[1:]])

    y = im.net.matmul(arranged(names[0], operands[0], [batch, own[0], summed]),
                      arranged(names[1], operands[1], [batch, summed, own[1]]))
    made = batch + own[0] + own[1]
    return im.net.transpose(im.net.reshape(y, [extents[x] for x in made]), [made.index(x) for x in out])


# Normalisation.


def _affine(im, gamma, beta, width, axis_name):
    one = im.value(torch.ones(width)) if gamma is None else im.value(gamma)
    zero = im.value(torch.zeros(width)) if beta is None else im.value(beta)
    return one, zero


@op("aten.batch_norm.default")
def batch_norm(im, x, gamma, beta, mean, variance, training, momentum, epsilon, _cudnn=False):
    if not training:
        shape = [1, -1] + [1] * (len(im.shape(x)) - 2)
        gamma, beta = _affine(im, gamma, beta, im.shape(x)[1], "channels")
        rows = [im.net.reshape(im.value(each), shape) for each in (mean, variance, gamma, beta)]
        scale = im.net.apply("mul", [rows[2], im.net.apply("rsqrt", [im.net.apply("add_scalar", [rows[1]], [epsilon])])])
        centred = im.net.apply("sub", [im.value(x), rows[0]])
        return im.net.apply("add", [im.net.apply("mul", [centred, scale]), rows[3]])
    if mean is None or variance is None:
        raise Refused("batch norm without running statistics is not known")
    gamma, beta = _affine(im, gamma, beta, im.shape(x)[1], "channels")
    return im.net.batch_norm_with(im.value(x), gamma, beta, im.value(mean), im.value(variance), epsilon, momentum)


@op("aten.layer_norm.default")
def layer_norm(im, x, shape, gamma=None, beta=None, epsilon=1e-5, _cudnn=False):
    extents, axes = im.shape(x), len(shape)
    width = math.prod(shape)
    gamma, beta = _affine(im, gamma, beta, width, "features")
    flat = im.value(x) if axes == 1 else im.net.reshape(im.value(x), list(extents[:-axes]) + [width])
    if axes > 1:
        gamma, beta = im.net.reshape(gamma, [width]), im.net.reshape(beta, [width])
    y = im.net.layer_norm_with(flat, gamma, beta, epsilon)
    return y if axes == 1 else im.net.reshape(y, list(extents))


@op("aten.group_norm.default")
def group_norm(im, x, groups, gamma=None, beta=None, epsilon=1e-5, _cudnn=False):
    extents = im.shape(x)
    width = math.prod(extents[1:]) // groups
    ones, zeros = im.value(torch.ones(width)), im.value(torch.zeros(width))
    y = im.net.layer_norm_with(im.net.reshape(im.value(x), [extents[0], groups, width]), ones, zeros, epsilon)
    y = im.net.reshape(y, list(extents))
    row = [1, extents[1]] + [1] * (len(extents) - 2)
    if gamma is not None:
        y = im.net.apply("mul", [y, im.net.reshape(im.value(gamma), row)])
    if beta is not None:
        y = im.net.apply("add", [y, im.net.reshape(im.value(beta), row)])
    return y


@op("aten.rms_norm.default")
def rms_norm(im, x, shape, gamma=None, epsilon=None):
    if len(shape) != 1:
        raise Refused("an RMS norm over several axes is not known")
    gamma = im.value(torch.ones(shape[0]) if gamma is None else gamma)
    return im.net.rms_norm_with(im.value(x), gamma, torch.finfo(torch.float32).eps if epsilon is None else epsilon)


# Element by element.

_UNARY = {"relu": "relu", "relu6": "relu6", "silu": "silu", "hardswish": "hardswish", "hardsigmoid": "hardsigmoid",
          "sigmoid": "sigmoid", "tanh": "tanh", "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "sqrt": "sqrt",
          "rsqrt": "rsqrt", "reciprocal": "reciprocal", "abs": "abs", "neg": "neg", "erf": "erf", "sin": "sin", "cos": "cos",
          "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "floor": "floor",
          "ceil": "ceil", "round": "round", "trunc": "trunc", "sign": "sign", "mish": "mish", "square": "square",
          "selu": "selu", "log_sigmoid": "logsigmoid"}


def _unary(function):
    return lambda im, x: im.net.apply(function, [im.value(x)])


for _name, _function in _UNARY.items():
    OPS[f"aten.{_name}.default"] = _unary(_function)


@op("aten.relu.default")
def relu(im, x):
    return im.net.relu(im.value(x))


@op("aten.gelu.default")
def gelu(im, x, approximate="none"):
    return im.net.apply("gelu_tanh" if approximate == "tanh" else "gelu", [im.value(x)])


@op("aten.leaky_relu.default")
def leaky_relu(im, x, slope=0.01):
    return im.net.leaky_relu(im.value(x), slope)


@op("aten.elu.default")
def elu(im, x, alpha=1, scale=1, input_scale=1):
    if scale != 1 or input_scale != 1:
        raise Refused("an elu with scales is not known")
    return im.net.apply("elu", [im.value(x)], [alpha])


@op("aten.softplus.default")
def softplus(im, x, beta=1, threshold=20):
    return im.net.apply("softplus", [im.value(x)], [beta, threshold])


@op("aten.hardtanh.default")
def hardtanh(im, x, low=-1, high=1):
    return im.net.apply("hardtanh", [im.value(x)], [low, high])


@op("aten.clamp.default")
def clamp(im, x, low=None, high=None):
    largest = torch.finfo(torch.float32).max
    return im.net.apply("clip", [im.value(x)], [-largest if low is None else low, largest if high is None else high])


@op("aten.clamp_min.default")
def clamp_min(im, x, low):
    return clamp(im, x, low)


@op("aten.dropout.default")
def dropout(im, x, probability, training):
    if not training or probability == 0:
        return x
    return im.net.dropout(im.value(x), probability)


@op("aten.bernoulli.float")
def bernoulli(im, x, p=0.5, generator=None):
    """1 with the probability p: dropout of p, which leaves p / p. In evaluation it is p, what is expected."""
    shape = [int(extent) for extent in im.meta().shape]
    return im.net.dropout(im.value(torch.full(shape, float(p))), 1 - p)


def _arithmetic(function, scalar):
    def row(im, a, b, alpha=1, rounding_mode=None):
        if rounding_mode is not None:
            raise Refused("division with rounding is not known")
        if alpha != 1:
            b = b * alpha if not im.is_value(b) else im.net.apply("mul_scalar", [b], [alpha])
        number = _number(im, b)
        if number is not None and im.is_value(a):
            name, sign = scalar
            return im.net.apply(name, [a], [sign * number])
        number = _number(im, a)
        if number is not None and function in ("add", "mul"):
            return im.net.apply(scalar[0], [b], [number])
        if number is not None and function in ("sub", "div"):
            return im.net.apply("rsub_scalar" if function == "sub" else "rdiv_scalar", [b], [number])
        a, b = im.value(a), im.value(b)
        if function == "add" and im.shape(a) == im.shape(b):
            return im.net.add(a, b)
        return im.net.apply(function, [a, b])

    return row


def _number(im, x):
    """The number that a scalar or a constant of one element is, else None."""
    if im.is_value(x):
        return None
    if isinstance(x, torch.Tensor):
        return float(x) if x.dim() == 0 else None
    return float(x)


for _name, _function, _scalar in (("add", "add", ("add_scalar", 1)), ("sub", "sub", ("add_scalar", -1)),
                                  ("mul", "mul", ("mul_scalar", 1)), ("div", "div", ("div_scalar", 1))):
    for _overload in ("Tensor", "Scalar", "Tensor_mode"):
        OPS[f"aten.{_name}.{_overload}"] = _arithmetic(_function, _scalar)


@op("aten.rsub.Scalar")
def rsub(im, x, number, alpha=1):
    if alpha != 1:
        raise Refused("alpha other than 1 is not known")
    return im.net.apply("rsub_scalar", [im.value(x)], [number])


@op("aten.pow.Tensor_Scalar")
def pow_scalar(im, x, exponent):
    return im.net.apply("pow_scalar", [im.value(x)], [exponent])


@op("aten.pow.Tensor_Tensor")
def pow_tensor(im, x, exponent):
    return im.net.apply("pow", [im.value(x), im.value(exponent)])


def _binary(function, dtype="float32"):
    return lambda im, a, b: im.net.apply(function, [im.value(a), im.value(b)], [], "", dtype)


for _name, _function in (("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"), ("eq", "equal"),
                         ("ne", "not_equal")):
    for _overload in ("Tensor", "Scalar"):
        OPS[f"aten.{_name}.{_overload}"] = _binary(_function, "uint8")
for _name in ("minimum", "maximum"):
    OPS[f"aten.{_name}.default"] = _binary(_name)
for _name in ("logical_and", "logical_or", "logical_xor"):
    OPS[f"aten.{_name}.default"] = _binary(_name, "uint8")


@op("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther")
def where(im, condition, a, b):
    return im.net.apply("where", [im.value(condition), im.value(a), im.value(b)])


@op("aten.masked_fill.Scalar")
def masked_fill(im, x, mask, number):
    return im.net.apply("where", [im.value(mask), im.value(torch.tensor([float(number)])), im.value(x)])


@op("aten.softmax.int", "aten._softmax.default")
def softmax(im, x, axis, dtype=None):
    return im.net.softmax(im.value(x), _axis(im, x, axis))


@op("aten.log_softmax.int", "aten._log_softmax.default")
def log_softmax(im, x, axis, dtype=None):
    return im.net.log_softmax(im.value(x), _axis(im, x, axis))


@op("aten.to.dtype", "aten._to_copy.default", "aten.to.dtype_layout")
def to(im, x, dtype=None, *_, **__):
    names = {torch.float32: "float32", torch.int64: "int32", torch.int32: "int32", torch.bool: "uint8", torch.uint8: "uint8"}
    if dtype is None:
        return x
    if dtype not in names:
        raise Refused(f"values of type {dtype} are not known; Penstock trains float32")
    return x if im.net.dtype(x) == names[dtype] else im.net.cast(x, names[dtype])


@op("aten.contiguous.default", "aten.clone.default", "aten.alias.default", "aten.lift_fresh_copy.default",
    "aten._assert_tensor_metadata.default")
def same(im, x, *_, **__):
    return x


def _filled(number):
    """What takes of its argument the shape and type only."""
    return lambda im, x, *args, **_: torch.full(tuple(im.meta().shape), number, dtype=im.meta().dtype)


for _name, _filling in (("new_zeros", 0), ("zeros_like", 0), ("new_ones", 1), ("ones_like", 1), ("new_empty", 0), ("empty_like", 0)):
    OPS[f"aten.{_name}.default"] = _filled(_filling)


@op("aten.full_like.default")
def full_like(im, x, number, **_):
    return torch.full(tuple(im.meta().shape), number, dtype=im.meta().dtype)


@op("aten.new_full.default")
def new_full(im, x, size, number, **_):
    return torch.full(tuple(im.meta().shape), number, dtype=im.meta().dtype)


# Reductions.


def _reduction(function):
    def row(im, x, axes=None, keep=False, dtype=None):
        axes = [] if axes is None else [axes] if isinstance(axes, int) else list(axes)
        y = im.net.reduce(function, im.value(x), axes, keep)
        return y

    return row


for _name, _function in (("mean", "mean"), ("sum", "sum"), ("amax", "max"), ("amin", "min")):
    for _overload in ("dim", "dim_IntList", "default"):
        OPS[f"aten.{_name}.{_overload}"] = _reduction(_function)


@op("aten.var.correction")
def variance(im, x, axes=None, correction=1, keepdim=False):
    extents = im.shape(x)
    axes = list(range(len(extents))) if axes is None else [_axis(im, x, axis) for axis in axes]
    count = math.prod(extents[axis] for axis in axes)
    centred = im.net.apply("sub", [im.value(x), im.net.reduce("mean", im.value(x), axes, True)])
    mean = im.net.reduce("mean", im.net.apply("square", [centred]), axes, keepdim)
    return im.net.apply("mul_scalar", [mean], [count / (count - (1 if correction is None else correction))])


@op("aten.argmax.default")
def argmax(im, x, axis=None, keep=False):
    if axis is None:
        raise Refused("argmax over all axes is not known; name one")
    y = im.net.argmax(im.value(x), _axis(im, x, axis))
    return y if keep else im.net.reshape(y, im.out_shape())


# Windows.


def _window(im, x, kernel, stride, padding, ceil_mode):
    """begin and end of the padding; ceil mode is more padding at the end."""
    spatial = len(im.shape(x)) - (2 if len(im.shape(x)) > 2 else 1)
    kernel = _pair(kernel, spatial)
    stride = _pair(stride, spatial) if stride not in (None, [], ()) else kernel
    begin = _pair(padding, spatial)
    end = list(begin)
    if ceil_mode:
        for i, extent in enumerate(im.shape(x)[2:]):
            wanted = im.out_shape()[2 + i]
            end[i] = max(begin[i], (wanted - 1) * stride[i] + kernel[i] - extent - begin[i])
    return kernel, stride, begin, end


@op("aten.max_pool2d.default", "aten.max_pool1d.default", "aten.max_pool3d.default")
def max_pool(im, x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    if any(d != 1 for d in _pair(dilation, 1)):
        raise Refused("max pooling with dilation is not known")
    return im.net.max_pool(im.value(x), *_window(im, x, kernel, stride, padding, ceil_mode))


@op("aten.avg_pool2d.default", "aten.avg_pool1d.default", "aten.avg_pool3d.default")
def avg_pool(im, x, kernel, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    if divisor_override is not None:
        raise Refused("divisor_override is not known")
    kernel, stride, begin, end = _window(im, x, kernel, stride, padding, ceil_mode)
    if ceil_mode and end != begin and count_include_pad:
        raise Refused("average pooling with ceil_mode and count_include_pad is not known")
    return im.net.avg_pool(im.value(x), kernel, stride, begin, end, count_include_pad)


@op("aten.adaptive_avg_pool2d.default", "aten.adaptive_avg_pool1d.default", "aten.adaptive_avg_pool3d.default")
def adaptive_avg_pool(im, x, size):
    extents = im.shape(x)[2:]
    size = [extent if wanted is None else wanted for wanted, extent in zip(_pair(size, len(extents)), extents)]
    if all(wanted == 1 for wanted in size):
        return im.net.global_avg_pool(im.value(x))
    if tuple(size) == tuple(extents):
        return x
    if len(set(size)) == 1:
        return im.net.adaptive_avg_pool(im.value(x), size[0])
    if any(extent % wanted for wanted, extent in zip(size, extents)):
        raise Refused(f"adaptive pooling of {list(extents)} to {size} is not known")
    kernel = [extent // wanted for wanted, extent in zip(size, extents)]
    return im.net.avg_pool(im.value(x), kernel, kernel)


@op("aten.upsample_bilinear2d.vec", "aten.upsample_nearest2d.vec")
def upsample(im, x, size, *rest):
    bilinear = "bilinear" in str(im.node.target)
    if bilinear and rest[0]:
        raise Refused("interpolation with align_corners is not known")
    inside, outside = im.shape(x)[2:], im.out_shape()[2:]
    if any(big % small for big, small in zip(outside, inside)):
        raise Refused(f"interpolation from {list(inside)} to {outside} is not known: the factor must be whole")
    return im.net.upsample(im.value(x), [big // small for big, small in zip(outside, inside)], bilinear)


# Shapes.


@op("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.flatten.using_ints",
    "aten.unflatten.int", "aten.unsqueeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze.default")
def reshape(im, x, *_, **__):
    return im.net.reshape(im.value(x), im.out_shape() or [1])


@op("aten.permute.default")
def permute(im, x, order):
    return im.net.transpose(im.value(x), [_axis(im, x, axis) for axis in order])


@op("aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default")
def transpose(im, x, first, second):
    order = list(range(len(im.shape(x))))
    first, second = _axis(im, x, first), _axis(im, x, second)
    order[first], order[second] = order[second], order[first]
    return im.net.transpose(im.value(x), order)


@op("aten.t.default", "aten.numpy_T.default")
def turned(im, x):
    return im.net.transpose(im.value(x), list(range(len(im.shape(x))))[::-1])


@op("aten.cat.default")
def cat(im, values, axis=0):
    values = [value for value in values if math.prod(im.shape(value)) > 0]
    return im.net.concat([im.value(value) for value in values], _axis(im, values[0], axis))


@op("aten.stack.default")
def stack(im, values, axis=0):
    rank = len(im.shape(values[0])) + 1
    return im.net.stack([im.value(value) for value in values], axis + rank if axis < 0 else axis)


@op("aten.chunk.default")
def chunk(im, x, count, axis=0):
    axis = _axis(im, x, axis)
    extent = im.shape(x)[axis]
    size = -(-extent // count)
    return split(im, x, size, axis)


@op("aten.split.Tensor")
def split(im, x, size, axis=0):
    axis = _axis(im, x, axis)
    extent = im.shape(x)[axis]
    return split_sizes(im, x, [min(size, extent - begin) for begin in range(0, extent, size)], axis)


@op("aten.split_with_sizes.default", "aten.split.sizes")
def split_sizes(im, x, sizes, axis=0):
    if len(sizes) == 1:
        return [x]
    return im.net.split(im.value(x), list(sizes), _axis(im, x, axis))


@op("aten.unbind.int")
def unbind(im, x, axis=0):
    axis = _axis(im, x, axis)
    shape = list(im.shape(x))
    parts = split_sizes(im, x, [1] * shape[axis], axis)
    return [im.net.reshape(part, shape[:axis] + shape[axis + 1:]) for part in parts]


@op("<built-in function getitem>")
def getitem(im, values, index):
    return values[index]


@op("aten.slice.Tensor")
def slice_(im, x, axis=0, begin=None, end=None, step=1):
    axis = _axis(im, x, axis)
    extent = im.shape(x)[axis]
    begin, end, step = slice(begin, end, step).indices(extent)
    if (begin, end, step) == (0, extent, 1):
        return x
    return im.net.slice(im.value(x), axis, begin, im.out_shape()[axis], step)


@op("aten.select.int")
def select(im, x, axis, index):
    axis = _axis(im, x, axis)
    extent = im.shape(x)[axis]
    y = im.net.slice(im.value(x), axis, index % extent, 1)
    return im.net.reshape(y, im.out_shape() or [1])


@op("aten.expand.default", "aten.expand_as.default")
def expand(im, x, *_, **__):
    return im.net.expand(im.value(x), im.out_shape())


@op("aten.roll.default")
def roll(im, x, shifts, axes=()):
    if not axes:
        raise Refused("roll without axes is not known")
    for shift, axis in zip(_pair(shifts, 1), _pair(axes, 1)):
        x = im.net.roll(im.value(x), _axis(im, x, axis), shift)
    return x


@op("aten.flip.default")
def flip(im, x, axes):
    for axis in axes:
        x = im.net.flip(im.value(x), _axis(im, x, axis))
    return x


@op("aten.pad.default", "aten.constant_pad_nd.default")
def pad(im, x, amounts, mode="constant", value=None):
    if not isinstance(mode, str):
        mode, value = "constant", mode
    if mode != "constant":
        raise Refused(f"padding by '{mode}' is not known")
    rank = len(im.shape(x))
    begin, end = [0] * rank, [0] * rank
    for i in range(len(amounts) // 2):
        begin[rank - 1 - i], end[rank - 1 - i] = amounts[2 * i], amounts[2 * i + 1]
    if not any(begin) and not any(end):
        return x
    if min(begin + end) < 0:
        raise Refused("padding by less than nothing is not known")
    return im.net.pad(im.value(x), begin, end, value or 0.0)


@op("aten.index.Tensor")
def index(im, x, indices):
    given = [(axis, each) for axis, each in enumerate(indices) if each is not None]
    if len(given) != 1:
        raise Refused("an index by several tensors is not known")
    axis, places = given[0]
    if not im.is_value(places) and places.dtype == torch.bool:
        raise Refused("an index by a mask is not known: its shape would depend on data")
    y = im.net.gather(im.value(x), im.value(places), axis)
    return y


@op("aten.embedding.default")
def embedding(im, weight, tokens, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if scale_grad_by_freq:
        raise Refused("scale_grad_by_freq is not known")
    tokens, weight = im.value(tokens), im.value(weight)
    if padding_idx is not None and padding_idx >= 0:
        # The row of the padding gets no gradient. Where it is zero, that is what a negative token does.
        if im.values[im.net.name(weight)][padding_idx].any():
            raise Refused("the row of padding_idx is not zero")
        padding = im.net.apply("equal", [tokens, im.value(torch.tensor([padding_idx]))], [], "", "uint8")
        tokens = im.net.apply("where", [padding, im.value(torch.tensor([-1])), tokens], [], "", "int32")
    return im.net.embedding(tokens, weight)


# Attention.


def _attention_of_parts(im, q, k, v, mask, scale):
    """With a gradient of the mask, such as T5's positions, which the kernel for attention does not make."""
    scores = im.net.matmul(im.net.apply("mul_scalar", [im.value(q)], [scale]), im.net.transpose(im.value(k), [0, 1, 3, 2]))
    return im.net.matmul(im.net.softmax(im.net.apply("add", [scores, im.value(mask)]), 3), im.value(v))


@op("aten.scaled_dot_product_attention.default")
def attention(im, q, k, v, mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    heads, kv_heads = im.shape(q)[-3] if len(im.shape(q)) == 4 else 1, im.shape(k)[-3] if len(im.shape(k)) == 4 else 1
    if len(im.shape(q)) != 4:
        raise Refused("attention over tensors that are not [batch, heads, sequence, width] is not known")
    if mask is not None and im.meta(node := im.node.args[3] if len(im.node.args) > 3 else im.node.kwargs["attn_mask"]
                                    ).dtype != torch.bool and im.is_trained(node):
        if is_causal or dropout_p or heads != kv_heads:
            raise Refused("attention with a mask that is trained and causal order, dropout or shared heads is not known")
        return _attention_of_parts(im, q, k, v, mask, 1 / math.sqrt(im.shape(q)[-1]) if scale is None else scale)
    if mask is not None:
        shape = im.shape(mask)
        mask = im.net.reshape(im.value(mask), [1] * (4 - len(shape)) + list(shape))
    return im.net.attention(im.value(q), im.value(k), im.value(v), mask, heads, kv_heads, is_causal, scale or 0.0, dropout_p)


# Losses that a module computes itself.


@op("aten.cross_entropy_loss.default")
def cross_entropy(im, x, labels, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    if reduction != 1:
        raise Refused("a cross entropy that is not the mean is not known")
    if im.net.dtype(im.value(labels)) != "int32":
        raise Refused("a cross entropy with probabilities as labels is not known")
    return im.net.weighted_cross_entropy(im.value(x), im.value(labels), label_smoothing, ignore_index,
                                         None if weight is None else im.value(weight))


def _element_loss(name):
    def row(im, x, target, reduction=1, width=1.0):
        if reduction != 1:
            raise Refused("a loss that is not the mean is not known")
        return im.net.element_loss(name, im.value(x), im.value(target), width)

    return row


for _name, _function in (("mse_loss", "mse"), ("l1_loss", "l1"), ("smooth_l1_loss", "smooth_l1"), ("huber_loss", "huber")):
    OPS[f"aten.{_name}.default"] = _element_loss(_function)


@op("aten.binary_cross_entropy_with_logits.default")
def bce_with_logits(im, x, target, weight=None, pos_weight=None, reduction=1):
    if weight is not None or pos_weight is not None or reduction != 1:
        raise Refused("a binary cross entropy with weights, or that is not the mean, is not known")
    return im.net.element_loss("bce_with_logits", im.value(x), im.value(target))
