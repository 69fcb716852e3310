"""Arrays of the caller as the engine takes them: the same memory wherever it is in one piece."""

import sys

import numpy as np

from ._core import UserError


def is_torch_tensor(value):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value, name):
    """A NumPy array over the memory of `value`; a copy only where its elements do not lie side by side."""
    if is_torch_tensor(value):
        if value.device.type != "cpu":
            raise UserError(f"input '{name}' is on the device '{value.device}'; move it with .cpu()")
        try:
            value = value.detach().numpy()
        except TypeError:
            raise UserError(f"input '{name}' is {str(value.dtype).removeprefix('torch.')}, which NumPy does not have; "
                            "convert it with .float()") from None
    array = np.asarray(value)
    if not array.dtype.isnative or array.dtype.kind not in "fiub":
        raise UserError(f"input '{name}' is {array.dtype}; give float32, int32, int64, uint8 or bool")
    if array.ndim == 0:
        raise UserError(f"input '{name}' is a single number; give an array")
    return np.ascontiguousarray(array)


def named_arrays(ports, positional, named):
    """The arrays by input: first those without a name, in the order of the network's inputs, then those with one."""
    names = [port.name for port in ports]
    if len(positional) > len(names):
        raise UserError(f"the network has {len(names)} inputs ({', '.join(names)}), not {len(positional)}")
    arrays = dict(zip(names, positional))
    for name, value in named.items():
        if name in arrays:
            raise UserError(f"input '{name}' is given twice")
        arrays[name] = value
    types = {port.name: port.dtype for port in ports}
    for name, value in arrays.items():
        arrays[name] = array = as_array(value, name)
        wanted = types.get(name)
        if wanted is not None and array.dtype != wanted and (wanted, str(array.dtype)) not in _ALIKE:
            raise UserError(f"input '{name}' is {array.dtype}, the network takes {wanted}")
    return arrays


_ALIKE = {("int32", "int64"), ("uint8", "bool")}
