"""Networks from PyTorch modules: torch.export in training mode, then one row of a table for each op (torch_ops.py).

What does not depend on inputs or parameters (masks, positions, indices) is computed by PyTorch while the module is
read, and enters the network as constants.
"""

import re
from dataclasses import dataclass, field

import numpy as np
import torch

from . import _core
from .networks import Imported
from .torch_losses import add_loss
from .torch_ops import OPS, RANDOM, VIEWS, Refused

_DTYPES = {torch.float32: "float32", torch.int64: "int32", torch.int32: "int32", torch.bool: "uint8", torch.uint8: "uint8"}


@dataclass
class ModuleState:
    """How the module's state dict and the network's state belong together."""

    keys: dict = field(default_factory=dict)  # name in the state dict -> name in the network's state
    shapes: dict = field(default_factory=dict)  # of the state dict's tensors
    others: dict = field(default_factory=dict)  # tensors that the network does not have: kept as they were
    counters: tuple = ()  # of the others: numbers of steps

    def state_dict(self, values, steps):
        state = {}
        for key in [*self.keys, *self.others]:
            if key in self.keys:
                state[key] = torch.from_numpy(values[self.keys[key]]).reshape(self.shapes[key])
            else:
                state[key] = self.others[key] + steps if key in self.counters else self.others[key].clone()
        return state

    def own_state(self, state):
        for key in state:
            if key not in self.keys and key not in self.others:
                raise _core.UserError(f"'{key}' is no tensor of the module's state")
        for key in self.keys:
            if key not in state:
                raise _core.UserError(f"'{key}' is missing from the state; the module has {len(self.keys)} tensors")
            if tuple(state[key].shape) != tuple(self.shapes[key]):
                raise _core.UserError(f"'{key}' has the shape {list(self.shapes[key])}, not {list(state[key].shape)}")
        return {name: state[key].reshape(state[key].shape or (1,)) for key, name in self.keys.items()}


class Importer:
    """Builds the network of one exported program; what rows of the table call is public."""

    def __init__(self, module, exported, name):
        self.net = _core.NetworkBuilder(name)
        self.module, self.exported = module, exported
        self.values = {}  # first values by name of the network's state
        self.names = {}  # of a parameter's or buffer's tensor, by identity: the state dict's first name of it
        self.node = None
        self._env, self._constants, self._keep = {}, {}, []
        for key, tensor in _named_state(module):
            self.names.setdefault(id(tensor), key)

    # What rows ask for.

    def is_value(self, x):
        return isinstance(x, _core.Value)

    def shape(self, x):
        return tuple(self.net.shape(x)) if self.is_value(x) else tuple(x.shape)

    def value(self, x):
        """A value of the network; a constant tensor becomes one."""
        if self.is_value(x):
            return x
        if not isinstance(x, torch.Tensor):
            x = torch.tensor(float(x))
        known = self._constants.get(id(x))
        if known is None:
            known = self._constants[id(x)] = self._constant(x)
            self._keep.append(x)  # its identity is in use
        return known

    def meta(self, node=None):
        """The example's tensor of a node: shape and type of what it gives."""
        return (node or self.node).meta["val"]

    def out_shape(self):
        return [int(extent) for extent in self.meta().shape]

    def is_trained(self, node):
        """Whether a node's value depends on parameters that are trained."""
        parameters, seen, left = self.exported.graph_signature.inputs_to_parameters, set(), [node]
        while left:
            node = left.pop()
            if node not in seen:
                seen.add(node)
                left += node.all_input_nodes
                if node.name in parameters and _tensor_of(self.module, parameters[node.name]).requires_grad:
                    return True
        return False

    def refuse(self, reason):
        raise Refused(reason)

    # The walk.

    def run(self, inputs):
        outputs = self._walk(self.exported.graph_module, lambda node: self._placeholder(node, inputs))
        kinds = [spec.kind.name for spec in self.exported.graph_signature.output_specs]
        return [value for value, kind in zip(outputs, kinds) if kind == "USER_OUTPUT"]

    def _walk(self, module, placeholder):
        order = {node: i for i, node in enumerate(module.graph.nodes)}
        for node in module.graph.nodes:
            self.node = node
            if node.op == "placeholder":
                self._env[node] = placeholder(node)
            elif node.op == "get_attr":
                self._env[node] = getattr(module, node.target)
            elif node.op == "call_function":
                self._call(node, order)
            elif node.op == "output":
                return _map(node.args[0], self._env)
        raise _core.UserError("the exported module has no output")

    def _call_part(self, node, args):
        """A part of the module that stands apart because it changes PyTorch's mode: what is in it is read in place."""
        first = next(i for i, each in enumerate(args) if isinstance(each, torch.fx.GraphModule))
        if str(node.target) == "wrap_with_set_grad_enabled" and not args[0]:
            raise _core.UserError(f"torch.no_grad() within a module is not known{_where(node)}; freeze parameters with "
                                  "requires_grad_(False)")
        given = list(args[first + 1:])
        return self._walk(args[first], lambda _: given.pop(0))

    def _placeholder(self, node, inputs):
        signature = self.exported.graph_signature
        name = node.name
        if name in signature.inputs_to_parameters:
            return self._parameter(signature.inputs_to_parameters[name])
        if name in signature.inputs_to_buffers:
            key = signature.inputs_to_buffers[name]
            source = _tensor_of(self.module, key)
            constant = source.detach().clone()
            self._keep.append(constant)
            self.names.setdefault(id(constant), self.names.get(id(source), key))
            return constant
        if name in signature.inputs_to_lifted_tensor_constants:
            return self.exported.constants[signature.inputs_to_lifted_tensor_constants[name]].clone()
        return inputs.pop(0)

    def _parameter(self, key):
        tensor = _tensor_of(self.module, key)
        name = self.names[id(tensor)]
        if name not in self.values:
            _check_dtype(name, tensor, torch.float32)
            self.values[name] = _numpy(tensor)
            self._constants[name] = self.net.parameter(name, list(tensor.shape) or [1])
        return self._constants[name]

    def _constant(self, tensor):
        if tensor.dtype not in _DTYPES and not tensor.dtype.is_floating_point:
            self.refuse(f"a constant of type {tensor.dtype}")
        name = self.names.get(id(tensor), f"constant.{len(self._constants)}")
        if name in self.values:
            name = f"{name}.{len(self._constants)}"
        self.values[name] = _numpy(tensor.to(torch.float32))
        value = self.net.buffer(name, list(tensor.shape) or [1])
        wanted = _DTYPES.get(tensor.dtype, "float32")
        return value if wanted == "float32" else self.net.cast(value, wanted)

    def _call(self, node, order):
        args = _map(node.args, self._env)
        kwargs = _map(node.kwargs, self._env)
        target = str(node.target)
        if not any(self.is_value(each) for each in _flat([args, kwargs])) and not _draws(target):
            self._env[node] = node.target(*args, **kwargs)
            return
        if any(isinstance(each, torch.fx.GraphModule) for each in args):
            self._env[node] = self._call_part(node, args)
            return
        row = OPS.get(target)
        in_place = row is None and (plain := _out_of_place(target)) in OPS
        if in_place:
            row = OPS[plain]
            self._check_alias(node, order)
        if row is None:
            raise _core.UserError(f"the op {target} is not known to Penstock{_where(node)}; write it with other ops, or "
                                  "leave that part out of the module")
        self.net.name_layers(_layer_name(node))
        try:
            self._env[node] = row(self, *args, **kwargs)
        except Refused as refused:
            raise _core.UserError(f"{target}: {refused}{_where(node)}") from None
        except _core.UserError as error:
            raise _core.UserError(f"{target}: {error}{_where(node)}") from None
        if in_place:
            self._env[node.args[0]] = self._env[node]

    def _check_alias(self, node, order):
        """An op that writes over its input is the op that makes a new value, unless somebody else looks at the same
        memory afterwards."""
        target = node.args[0]
        views = [user for user in target.users if str(user.target) in VIEWS and order[user] < order[node]]
        if str(target.target) in VIEWS:
            views.append(target.args[0])
        for view in views:
            if isinstance(view, torch.fx.Node) and any(order[user] > order[node] for user in view.users):
                raise _core.UserError(f"{node.target} writes over memory that '{view.name}' shares{_where(node)}; use the op "
                                      "that makes a new tensor")


def import_module(module, *, example, loss, batch):
    """The network of a module, with its values. `example`: what the module takes, then what the loss takes."""
    if example is None:
        raise _core.UserError("a PyTorch module needs example=: the arrays of one step, such as (images, labels)")
    example = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    example = tuple(_example(value, i, batch) for i, value in enumerate(example))
    arguments, targets = (example, ()) if loss is None else (example[:-1], example[-1:])
    if not arguments:
        raise _core.UserError("example= has what the loss takes only; give what the module takes first")
    exported = _export(module, arguments)
    importer = Importer(module, exported, type(module).__name__)
    names = _input_names(exported, len(arguments))
    inputs = [_input(importer, name, value) for name, value in zip(names, arguments)]
    outputs = importer.run(list(inputs))
    outputs = [value for value in outputs if importer.is_value(value)]
    if not outputs:
        raise _core.UserError("nothing that the module returns depends on its inputs")
    target = "target" if "labels" in names else "labels"
    add_loss(importer, loss, outputs, [_input(importer, target, value) for value in targets], _output_names(outputs))
    return _finish(importer, module)


def _finish(importer, module):
    network = importer.net.finish()
    used = {info.name for info in network.parameters}
    state, frozen = ModuleState(), set()
    persistent = module.state_dict()
    for key, tensor in _named_state(module, duplicates=True):
        name = importer.names.get(id(tensor))
        if key not in persistent:
            continue
        if name in used:
            state.keys[key], state.shapes[key] = name, tuple(tensor.shape)
            if isinstance(tensor, torch.nn.Parameter) and not tensor.requires_grad:
                frozen.add(name)
        else:
            state.others[key] = tensor.detach().clone()
    state.counters = tuple(key for key in state.others if key.endswith("num_batches_tracked"))
    for name in sorted(frozen):
        network = network.freeze(name)
    return Imported(network, {k: v for k, v in importer.values.items() if k in used}, state)


def _export(module, arguments):
    was_training = module.training
    if not was_training:
        module.train()
    try:
        return torch.export.export(module, arguments, strict=False)
    except _core.UserError:
        raise
    except Exception as error:  # whatever PyTorch raises: control flow on data, an op without a rule, the module's own
        line = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise _core.UserError(f"PyTorch cannot export the module: {line.strip()}; see torch.export for what it takes") from error
    finally:
        if not was_training:
            module.eval()


def _example(value, i, batch):
    tensor = value.detach() if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
    if tensor.device.type != "cpu":
        raise _core.UserError(f"example: array {i} is on the device '{tensor.device}'; move it with .cpu()")
    if tensor.dtype not in _DTYPES:
        raise _core.UserError(f"example: array {i} is {tensor.dtype}; give float32, int64, int32, uint8 or bool")
    if tensor.dim() == 0:
        raise _core.UserError(f"example: array {i} is a single number; give an array")
    if batch is not None and tensor.shape[0] != batch:
        repeats = -(-batch // tensor.shape[0])
        tensor = torch.cat([tensor] * repeats)[:batch]
    return tensor


def _input(importer, name, tensor):
    return importer.net.input(name, list(tensor.shape), _DTYPES[tensor.dtype])


def _input_names(exported, count):
    names = list(exported.graph_signature.user_inputs)
    if len(names) != count:
        raise _core.UserError(f"the module takes {len(names)} arrays, example= has {count} for it")
    return [str(name) for name in names]


def _output_names(outputs):
    return ["output"] if len(outputs) == 1 else [f"output.{i}" for i in range(len(outputs))]


def _named_state(module, duplicates=False):
    yield from module.named_parameters(remove_duplicate=not duplicates)
    yield from module.named_buffers(remove_duplicate=not duplicates)


def _tensor_of(module, key):
    path, _, name = key.rpartition(".")
    return getattr(module.get_submodule(path), name)


def _check_dtype(name, tensor, dtype):
    if tensor.dtype != dtype:
        raise _core.UserError(f"'{name}' is {tensor.dtype}; Penstock trains float32: convert the module with .float()")


def _numpy(tensor):
    array = tensor.detach().cpu().numpy()
    return np.ascontiguousarray(array.reshape(array.shape or (1,)), np.float32)


def _map(value, env):
    if isinstance(value, torch.fx.Node):
        return env[value]
    if isinstance(value, (tuple, list)):
        return [_map(each, env) for each in value]
    if isinstance(value, dict):
        return {key: _map(each, env) for key, each in value.items()}
    return value


def _flat(value):
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from _flat(each)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))
    else:
        yield value


def _out_of_place(target):
    """aten.relu_.default -> aten.relu.default"""
    return re.sub(r"^(aten\.\w+)_\.", r"\1.", target)


def _draws(target):
    """Whether an op is random: computed while the module is read, it would give the same in every step."""
    match = re.match(r"aten\.(\w+?)_?\.", target)
    return match is not None and match.group(1) in RANDOM


def _layer_name(node):
    """What an op's layers are called after: the path of the module that it stands in, or PyTorch's own name of it."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return (stack[-1][0] if stack else "") or node.name


def _where(node):
    """Where in the user's source an op stands, as far as PyTorch kept it."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip()]
    places = [line for line in lines if line.startswith("File ")]
    if not places:
        return ""
    match = re.match(r'File "(.*)", line (\d+)', places[-1])
    code = lines[-1] if not lines[-1].startswith("File ") else ""
    return f" ({match.group(1)}:{match.group(2)}{': ' + code if code else ''})" if match else ""
