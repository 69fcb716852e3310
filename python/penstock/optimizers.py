"""PyTorch's optimizers by PyTorch's names."""

from dataclasses import dataclass

from . import _core


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent.

    >>> SGD(lr=0.1, momentum=0.9).lr
    0.1
    """

    lr: float = 0.1
    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def core(self):
        return _core.Optimizer("sgd", self.lr, self.momentum, self.nesterov, self.weight_decay)


@dataclass(frozen=True)
class Adam:
    """Adam; weight decay is added to the gradient."""

    lr: float = 1e-3
    betas: tuple = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def core(self):
        return _core.Optimizer("adam", self.lr, 0.0, False, self.weight_decay, *self.betas, self.eps)


@dataclass(frozen=True)
class AdamW:
    """Adam with weight decay that is taken off the parameter."""

    lr: float = 1e-3
    betas: tuple = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 1e-2

    def core(self):
        return _core.Optimizer("adamw", self.lr, 0.0, False, self.weight_decay, *self.betas, self.eps)


def core_of(optimizer):
    """The engine's optimizer of one of these; of none, SGD with its defaults."""
    if optimizer is None:
        return SGD().core()
    if not isinstance(optimizer, (SGD, Adam, AdamW)):
        raise _core.UserError(f"optimizer is a {type(optimizer).__name__}; give ps.SGD, ps.Adam or ps.AdamW")
    return optimizer.core()
