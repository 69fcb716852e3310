"""The whole loop: data, schedule, checkpoints, progress."""

import math
import os
import sys
import time
from dataclasses import dataclass, field

from . import _core
from .optimizers import core_of
from .options import session_options
from .progress import ProgressLine
from .session import Session


@dataclass
class Trained:
    """What a loop over the caller's batches gave; `session` has the trained state."""

    session: Session
    loss: list = field(default_factory=list)  # one a step
    step_seconds: list = field(default_factory=list)  # one a step

    @property
    def steps(self):
        return len(self.loss)


def train(model, data, *, steps=None, epochs=None, progress=True, on_step=None, schedule=None, **arguments):
    """Trains a network.

    `data` names what `penstock train --data` knows ("fashion-mnist", "images:DIR", "synthetic", ...) for a built-in
    model or a ps.Network with inputs `images` and `labels`; further arguments are then batch, optimizer, evaluate,
    shuffle, init, save, checkpoint, checkpoint_every, keep_checkpoints, resume, report, trace, channels, image_size,
    classes, sequence and those of a session; it returns a TrainingResult. Otherwise `data` is a loader: something that gives the
    arrays of one step after another, once an epoch; further arguments are those of a session, and it returns a Trained.
    Ctrl-C ends training after the step under way.

    >>> import penstock as ps
    >>> len(ps.train("lenet", "synthetic", batch=4, steps=3, process_memory="1GiB", progress=False).loss)
    3
    >>> import numpy as np
    >>> batches = [(np.zeros((4, 1, 28, 28), np.float32), np.arange(4))]
    >>> ps.train("lenet", batches, batch=4, epochs=2, memory="64MiB", progress=False).steps
    2
    """
    if isinstance(data, (str, os.PathLike)):
        return _train_on_named(model, os.fspath(data), steps, epochs, progress, on_step, schedule, **arguments)
    return _train_on_batches(model, data, steps, epochs, progress, on_step, schedule, **arguments)


def _train_on_named(model, data, steps, epochs, progress, on_step, schedule, *, batch=32, optimizer=None, evaluate=False,
                    shuffle=True, init="", save="", checkpoint="", checkpoint_every=0, keep_checkpoints=1, resume="",
                    report="", trace="", channels=0, image_size=0, classes=0, sequence=0, **session):
    if not isinstance(model, (str, _core.Network)):
        raise _core.UserError("data by name is for a model by name or a ps.Network; give other models a loader")
    if "memory" in session:
        raise _core.UserError("the whole loop is bounded as a process: give process_memory= in place of memory=")
    if optimizer is not None and optimizer.lr == 0:
        raise _core.UserError("a learning rate of 0 trains nothing; give another one")
    options = _core.TrainingOptions()
    options.data, options.batch, options.steps, options.epochs = data, batch, steps or 0, epochs or 0
    options.shuffle, options.evaluate, options.optimizer = shuffle, evaluate, core_of(optimizer)
    options.schedule = schedule or _core.Schedule()
    options.init_file, options.save_file, options.resume_dir = os.fspath(init), os.fspath(save), os.fspath(resume)
    options.checkpoint_dir, options.checkpoint_every = os.fspath(checkpoint), checkpoint_every
    options.keep_checkpoints, options.command = keep_checkpoints, " ".join(sys.argv)
    options.report_file, options.trace_file = os.fspath(report), os.fspath(trace)
    own = isinstance(model, _core.Network)
    choice = _core.ModelChoice(model.name if own else model, channels, image_size, classes, model if own else None, sequence)
    line = ProgressLine(progress)

    def tell(state):
        line.tell(state.step, state.steps, state.loss, state.samples_per_second, state.seconds_left)
        if on_step is not None:
            on_step(state)

    try:
        return _core.train(choice, options, session_options(**session), tell)
    finally:
        line.end()


def _train_on_batches(model, data, steps, epochs, progress, on_step, schedule, *, checkpoint=None, checkpoint_every=0,
                      keep_checkpoints=1, **arguments):
    session = model if isinstance(model, Session) else Session(model, **arguments)
    result, line = Trained(session), ProgressLine(progress)
    base = session.learning_rate
    if epochs is None and steps is None:
        epochs = 1
    total = steps if steps is not None else epochs * len(data) if hasattr(data, "__len__") else None
    if schedule is not None and total is None:
        raise _core.UserError("a schedule needs to know the steps: give steps=, or data with a length")
    try:
        for batch in _batches(data, total, epochs):
            if schedule is not None:
                session.learning_rate = schedule.at(result.steps, total, base)
            begin = time.monotonic()
            loss = session.step(*batch)
            result.loss.append(loss)
            result.step_seconds.append(time.monotonic() - begin)
            rate = session.batch / max(1e-9, session.median_step_seconds)
            line.tell(result.steps, total, loss, rate, total and (total - result.steps) * session.batch / rate)
            if on_step is not None:
                on_step(result)
            if not math.isfinite(loss):
                raise _core.RunError(f"the loss is {loss} at step {result.steps}; a smaller learning rate or a schedule "
                                     "with warm-up may help")
            if checkpoint and checkpoint_every and result.steps % checkpoint_every == 0:
                session.save_checkpoint(checkpoint, keep=keep_checkpoints)
    finally:
        line.end()
    if checkpoint:
        session.save_checkpoint(checkpoint, keep=keep_checkpoints)
    return result


def _batches(data, total, epochs):
    """Batches until there were enough of them, going through the data again where steps ask for more."""
    done, epoch = 0, 0
    while epochs is None or epoch < epochs:
        before = done
        for batch in data:
            if total is not None and done == total:
                return
            yield batch
            done += 1
        epoch += 1
        if done == before or (total is not None and done == total):
            return
