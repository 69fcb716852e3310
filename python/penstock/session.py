"""Trains a network step by step within a memory budget."""

import html
import os
import statistics
import sys
import tempfile

import numpy as np

from . import _core, ranks
from .arrays import as_array, named_arrays
from .networks import network_of
from .optimizers import core_of
from .options import session_options
from .plans import Plan, tokens_of


class Report:
    """A page about a run, written to `path`; a notebook shows it."""

    def __init__(self, path):
        self.path = path

    def __repr__(self):
        return f"Report({self.path!r})"

    def _repr_html_(self):
        with open(self.path, encoding="utf-8") as page:
            return (f'<iframe style="width:100%;height:900px;border:0" srcdoc="{html.escape(page.read(), quote=True)}">'
                    "</iframe>")


class Session:
    """A network with its state, trained step by step within a memory budget.

    `model` is a torch.nn.Module, a ps.Network, the path of an ONNX file, or the name of a built-in model. `memory` bounds what the session adds to
    the process, `process_memory` the whole process; without either it is what is free, less a margin. Of a module,
    `example` are the arrays of one step (what the module takes, then what the loss takes) and `loss` is a built-in loss;
    without `loss` the module returns the loss itself. One thread at a time may use it. After a ps.RunError, or an
    error in a step, make a new one.

    `accumulate` micro-batches make a step: `batch` and `example` are of a whole step, a ps.Network is of one micro-batch;
    a step takes all of them, one behind the other, and run() takes one.

    Ctrl-C ends a step cleanly: the step under way is completed, then KeyboardInterrupt is raised, and the session can
    go on.

    >>> import numpy as np, penstock as ps
    >>> net = ps.NetworkBuilder("line")
    >>> x, wanted = net.input("x", [8, 3]), net.input("wanted", [8], "int32")
    >>> net.classifier(net.linear("answer", x, 2), wanted)
    >>> session = ps.Session(net.finish(), memory="64MiB", optimizer=ps.SGD(lr=0.5))
    >>> inputs = np.arange(24, dtype=np.float32).reshape(8, 3) / 24, np.arange(8) % 2
    >>> losses = [session.step(*inputs) for _ in range(20)]
    >>> losses[-1] < losses[0]
    True
    >>> sorted(session.state_dict())
    ['answer.bias', 'answer.weight']
    """

    def __init__(self, model, *, batch=None, memory=None, process_memory=None, example=None, loss=None, optimizer=None,
                 freeze=(), channels=0, image_size=0, classes=0, sequence=0, accumulate=1, **options):
        self._engine = None
        imported = network_of(model, batch=batch, example=example, loss=loss, channels=channels, image_size=image_size,
                              classes=classes, sequence=sequence, accumulate=accumulate)
        network = imported.network
        for pattern in (freeze,) if isinstance(freeze, str) else freeze:
            network = network.freeze(pattern)
        self._module, self._onnx_path = imported.module, imported.path
        self.network = network
        shape = network.inputs[0].shape if network.inputs else ()
        self.batch = accumulate * shape[0] if shape else accumulate
        if not network.has_loss:
            options.setdefault("training", False)
        self._engine = _core.Engine(network, core_of(optimizer),
                                    session_options(memory=memory, process_memory=process_memory, accumulate=accumulate,
                                                    **options))
        ranks.open_sessions.add(self)
        if optimizer is not None and optimizer.lr == 0:
            self._engine.learning_rate = 0.0  # of an optimizer, 0 asks the engine for its default
        if imported.onnx is not None:
            imported.onnx.fill(self._engine)
        self._shapes = {name: (tuple(shape), kind) for name, shape, kind in self._engine.state()}
        for name, value in imported.values.items():
            if name in self._shapes:
                self._engine.write(name, value)
        self.outputs, self.stats, self.gradient_norm = {}, None, 0.0
        self._losses, self._seconds = [], []

    @property
    def _core(self):
        if self._engine is None:
            raise _core.UserError("the session is closed; make a new one")
        return self._engine

    def step(self, *arrays, **named):
        """Trains once on the network's inputs, in their order or by name; returns the loss. What else the network gives
        is in `outputs`, what the step took in `stats`, the norm of gradients that are clipped in `gradient_norm`."""
        loss, self.outputs, self.stats, self.gradient_norm = self._core.step(named_arrays(self.network.inputs, arrays, named))
        self._losses.append(loss)
        self._seconds.append(self.stats.step_seconds)
        return loss

    def run(self, *arrays, **named):
        """Computes without training, with dropout off and by running statistics: a dictionary of outputs. Inputs may be
        left out, such as labels; what depends on them is left out too."""
        given = named_arrays(self.network.inputs, arrays, named)
        loss, outputs, _, _ = self._core.run(given)
        if self.network.has_loss and len(given) == len(self.network.inputs):
            outputs["loss"] = loss
        return outputs

    @property
    def plan(self):
        """What the plan in use promises."""
        return Plan(self.network.name, self.batch, [self._core.plan()], tokens=tokens_of(self.network))

    def explain(self, name):
        """Why a tensor, or what an op makes, is kept, swapped or computed again."""
        return "\n".join(self._core.explain(name))

    def save_plan(self, path):
        """The plan as a file, for Session(plan=...)."""
        self._core.save_plan(os.fspath(path))

    @property
    def learning_rate(self):
        """Of the steps from now on."""
        return self._core.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate):
        self._core.learning_rate = rate

    @property
    def steps_done(self):
        """Steps trained so far."""
        return self._core.steps_done

    def state_dict(self):
        """Parameters and buffers by name: NumPy arrays, or tensors that the module's load_state_dict() takes."""
        values = {name: self._core.read(name, list(shape)) for name, (shape, kind) in self._shapes.items()
                  if kind != "optimizer"}
        return values if self._module is None else self._module.state_dict(values, self.steps_done)

    def load_state_dict(self, state):
        """The other way; names that are missing or not known and shapes that differ are refused, and nothing is changed
        then."""
        if self._module is not None:
            state = self._module.own_state(state)
        wanted = {name: shape for name, (shape, kind) in self._shapes.items() if kind != "optimizer"}
        if self._module is not None:
            wanted = {name: wanted[name] for name in state}
        for name in wanted:
            if name not in state:
                raise _core.UserError(f"'{name}' is missing from the state; the network has {len(wanted)} tensors")
        arrays = {}
        for name, value in state.items():
            if name not in wanted:
                raise _core.UserError(f"'{name}' is no tensor of the network's state")
            arrays[name] = array = np.ascontiguousarray(as_array(value, name), np.float32)
            if array.shape != wanted[name]:
                raise _core.UserError(f"'{name}' has the shape {list(wanted[name])}, not {list(array.shape)}")
        for name, array in arrays.items():
            self._core.write(name, array)

    def state_sha256(self):
        """SHA-256 over the whole state, the optimizer's too: the same for every budget."""
        return self._core.state_sha256()

    def save(self, path):
        """Parameters and buffers as a safetensors file; of an ONNX file's session also as that file with these weights."""
        if self._onnx_path and _core.is_onnx_path(os.fspath(path)):
            _core.save_onnx(self._onnx_path, os.fspath(path), self._core)
        else:
            self._core.save(os.fspath(path))

    def load(self, path):
        """Parameters and buffers of a safetensors file."""
        self._core.load(os.fspath(path))

    def save_checkpoint(self, folder, info=None, keep=1):
        """The whole state with the steps done; training goes on from it bit for bit."""
        self._core.save_checkpoint(os.fspath(folder), {str(k): str(v) for k, v in (info or {}).items()}, keep)

    def load_checkpoint(self, folder, with_optimizer=True):
        """The other way; returns what save_checkpoint() was given as `info`."""
        self._core.load_checkpoint(os.fspath(folder), with_optimizer)
        return _core.checkpoint_facts(os.fspath(folder))[2]

    def report(self, path=None, trace=None):
        """Writes a page about the run so far, and with `trace` the first steps for Perfetto; a notebook shows the page."""
        if not self._losses:
            raise _core.UserError("there is nothing to report before the first step")
        if path is None:
            handle, path = tempfile.mkstemp(suffix=".html")
            os.close(handle)
        self._core.write_report(os.fspath(path), os.fspath(trace or ""), self._losses, self._seconds, self.stats,
                                " ".join(sys.argv))
        return Report(os.fspath(path))

    @property
    def median_step_seconds(self):
        """Of the steps after the first, which touches memory for the first time."""
        return statistics.median(self._seconds[1:] or self._seconds) if self._seconds else 0.0

    def close(self):
        """Gives memory and disk space back."""
        self._engine = None
        ranks.open_sessions.discard(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        state = "closed" if self._engine is None else f"{self.steps_done} steps done"
        return f"<Session of '{self.network.name}', batch {self.batch}, {state}>"
