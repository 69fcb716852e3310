"""ONNX's standard interface for who runs its models: prepare(), run_model(), run_node(), supports_device().

>>> import numpy as np, onnx, penstock.onnx_backend as backend
>>> node = onnx.helper.make_node("Neg", ["x"], ["y"])
>>> backend.run_node(node, [np.array([1, 2], np.float32)])[0]
array([-1., -2.], dtype=float32)
"""

import os
import tempfile

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from . import _core
from .networks import Imported
from .session import Session

_SHORT = 64  # elements of an input that may be an axis, a shape and the like


class PenstockRep(BackendRep):
    """A model that is ready to run. Its network is made by the first run for the shapes of that run's inputs, and again
    when they change; so is one that needs an input's value, such as a shape, before it runs."""

    def __init__(self, model, **options):
        self._model = onnx.ModelProto()
        self._model.CopyFrom(model)
        self._options = {"memory": "4GiB", "tier": "ram", "record": False, **options}
        initializers = {tensor.name for tensor in model.graph.initializer}
        self._names = [each.name for each in model.graph.input if each.name not in initializers]
        self._prepared = None

    def run(self, inputs, **kwargs):
        """The outputs in the model's order, of the model's types."""
        given = inputs if isinstance(inputs, dict) else dict(zip(self._names, inputs))
        for name, value in given.items():
            if not isinstance(value, (np.ndarray, np.generic)):
                raise _core.UserError(f"input '{name}' is a {type(value).__name__}; Penstock takes arrays")
        arrays = {name: np.asarray(value) for name, value in given.items()}
        session, outputs = self._session(arrays)
        ports = {port.name: port for port in session.network.inputs}
        # An input without elements, which only names a type, is left out.
        used = {name: _as_port(array, ports[name]) for name, array in arrays.items() if name in ports and array.size > 0}
        _, results, _, _ = session._core.run(used, any_numbers=True)  # masks have infinities
        wanted = self._model.graph.output
        return namedtupledict("Outputs", [each.name for each in wanted])(
            *[_as_model(results[_own(each.name)], each, *outputs[_own(each.name)]) for each in wanted])

    def _session(self, arrays):
        shapes = {name: array.shape for name, array in arrays.items()}
        if self._prepared is not None:
            before, known, session, outputs = self._prepared
            if before == shapes and all(np.array_equal(arrays[name], value) for name, value in known.items()):
                return session, outputs
            session.close()
            self._prepared = None
        with tempfile.TemporaryDirectory() as folder:  # from which values are read until the session has them
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(_for_import(self._model, arrays).SerializeToString())
            try:
                model, known = _load(path, arrays)
                session = Session(Imported(model.network, onnx=model), **self._options)
            except _core.UserError as error:
                raise _core.UserError(str(error).replace(path, "the model")) from None
        self._prepared = shapes, known, session, model.outputs
        return session, model.outputs


def _load(path, arrays):
    """The imported model, and which inputs are constants of it: none if that will do, else integers, else all that are
    short."""
    for kinds in ("", "iub", "iubf"):
        known = {name: array for name, array in arrays.items()
                 if array.dtype.kind in kinds and array.ndim <= 1 and array.size <= _SHORT}
        values = {name: (list(array.shape), array.ravel().astype(float).tolist()) for name, array in known.items()}
        try:
            return _core.OnnxModel.load(path, known=values), known
        except _core.UserError as error:
            if kinds == "iubf" or "must be known before the step" not in str(error):
                raise


class PenstockBackend(Backend):
    """Runs models on the CPU."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        if not cls.supports_device(device):
            raise _core.UserError(f"the device '{device}' is not known; there is CPU")
        super().prepare(model, device)
        return PenstockRep(model, **kwargs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        """One op, in a model of the newest opset; `opset_version` names another."""
        names = [name for name in node.input if name]
        values = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype),
                                                     np.shape(value)) for name, value in zip(names, inputs)]
        graph = onnx.helper.make_graph([node], "node", values, [onnx.ValueInfoProto(name=name) for name in node.output if name])
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        return PenstockRep(onnx.shape_inference.infer_shapes(model), **kwargs).run(dict(zip(names, inputs)))

    @classmethod
    def supports_device(cls, device):
        return device.split(":")[0] == "CPU"


def _own(name):
    """A network's output called `loss` is what it is trained by, so one of a model that only runs gets another name."""
    return "loss of the model" if name == "loss" else name


def _for_import(model, arrays):
    """The model with inputs of just these shapes where it leaves them free."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for each in copy.graph.input:
        dims = each.type.tensor_type.shape.dim
        if each.name in arrays and each.type.HasField("tensor_type") and not all(dim.HasField("dim_value") for dim in dims):
            each.type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto())
            for extent in arrays[each.name].shape:
                each.type.tensor_type.shape.dim.add(dim_value=extent)
    for node in copy.graph.node:
        node.input[:] = map(_own, node.input)
        node.output[:] = map(_own, node.output)
    for each in [*copy.graph.output, *copy.graph.value_info]:
        each.name = _own(each.name)
    return copy


def _as_port(array, port):
    if port.dtype == "float32":
        if array.dtype == np.float64 and (np.abs(array[np.isfinite(array)]) > np.finfo(np.float32).max).any():
            raise _core.UserError(f"input '{port.name}' has numbers that float32, in which Penstock computes, does not hold")
        array = array.astype(np.float32)
    elif port.dtype == "int32" and array.dtype != np.int32:
        array = np.clip(array.astype(np.float64), -(2**31), 2**31 - 1).astype(np.int32)
    elif port.dtype == "uint8":
        array = array.astype(np.uint8)
    if array.size != np.prod(port.shape, dtype=np.int64):
        raise _core.UserError(f"input '{port.name}' has the shape {list(array.shape)}, the network takes {list(port.shape)}")
    return np.ascontiguousarray(array.reshape(port.shape))


def _as_model(array, output, shape, element_type):
    """As the model declares the output; where it does not, as the import found."""
    element_type = output.type.tensor_type.elem_type or element_type
    return array.reshape(shape).astype(onnx.helper.tensor_dtype_to_np_dtype(element_type))


prepare = PenstockBackend.prepare
run_model = PenstockBackend.run_model
run_node = PenstockBackend.run_node
supports_device = PenstockBackend.supports_device
is_compatible = PenstockBackend.is_compatible
