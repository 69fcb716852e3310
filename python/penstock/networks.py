"""What a session trains, from whatever the caller has: a name, a network, a PyTorch module, an ONNX file."""

import os
import sys
from dataclasses import dataclass, field

import numpy as np

from . import _core


@dataclass
class Imported:
    """A network and what is known of where it came from."""

    network: _core.Network
    values: dict = field(default_factory=dict)  # first values by name; the others are drawn from the seed
    module: object = None  # torch_import.ModuleState of a PyTorch module, else None
    onnx: object = None  # _core.OnnxModel of an ONNX file, whose values are read from it, else None
    path: str = ""  # of the ONNX file


def is_torch_module(model):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def micro_batch(batch, accumulate):
    """The samples of one of `accumulate` micro-batches."""
    if accumulate < 1:
        raise _core.UserError(f"accumulate={accumulate}: a step has at least one micro-batch")
    if batch % accumulate:
        raise _core.UserError(f"a batch of {batch} does not divide into {accumulate} micro-batches of the same size; use a "
                              f"multiple, {(batch // accumulate + 1) * accumulate} say")
    return batch // accumulate


def network_of(model, *, batch=None, example=None, loss=None, channels=0, image_size=0, classes=0, sequence=0,
               accumulate=1):
    """The network of a model; `example` and `loss` are a PyTorch module's or an ONNX file's. `batch` and `example` are of
    a step, the network of one of its micro-batches; a network that is there already is one."""
    if isinstance(model, Imported):
        return model
    if accumulate != 1 and not isinstance(model, (_core.Network, _core.NetworkBuilder)):
        if batch is None:
            first = example[0] if isinstance(example, (tuple, list)) else example
            batch = np.shape(first)[0] if first is not None else 32
        batch = micro_batch(batch, accumulate)
    if is_torch_module(model):
        from . import torch_import

        return torch_import.import_module(model, example=example, loss=loss, batch=batch)
    if isinstance(model, os.PathLike) or isinstance(model, str) and _core.is_onnx_path(model):
        return _from_onnx(os.fspath(model), batch, example, loss, image_size)
    if loss is not None and not (isinstance(model, str) and loss == "cross_entropy"):
        raise _core.UserError("loss= is for PyTorch modules and ONNX files; a network says itself what its loss is")
    if isinstance(model, _core.Network):
        inputs = model.inputs
        if batch is not None and inputs and inputs[0].shape[:1] != (batch,):
            raise _core.UserError(f"the network was made for a batch of {inputs[0].shape[0]}, not {batch}")
        return Imported(model)
    if isinstance(model, _core.NetworkBuilder):
        raise _core.UserError("end the network first: give what builder.finish() returns")
    if not isinstance(model, str):
        raise _core.UserError(f"a {type(model).__name__} is no network; give a torch.nn.Module, a ps.Network, the path of "
                              "an ONNX file or the name of a model (ps.models() lists them)")
    info = _core.find_model(model)
    if example is not None:
        images = np.shape(example[0])
        if len(images) != (5 if info.volumetric else 4):
            raise _core.UserError(f"example: images of {model} have the shape [N, C, ...], not {list(images)}")
        batch = images[0] if batch is None else batch
        channels, image_size = channels or images[1], image_size or images[2]
    return Imported(_core.Network.model(model, batch=32 if batch is None else batch, channels=channels,
                                        image_size=image_size, classes=classes, sequence=sequence))


def _from_onnx(path, batch, example, loss, image_size):
    """Without `loss` the network computes the file's outputs and is not trained."""
    if not (loss is None or isinstance(loss, str)):
        raise _core.UserError("the loss of an ONNX file is a name: cross_entropy, output (the file's first output is the loss), "
                              "mse, l1, smooth_l1, huber, bce_with_logits or kl")
    if batch is None:
        batch = np.shape(example[0])[0] if example is not None else 0
    model = _core.OnnxModel.load(path, batch=batch, free_extent=image_size, loss=loss or "")
    return Imported(model.network, onnx=model, path=path)
