"""PyTorch's optimizers by PyTorch's names.

Beside PyTorch's arguments, `clip_norm` scales all gradients down by one factor where their norm is above it (0: not),
`decay` is what the weight decay is for, "all" parameters or "matrices" (two axes and more: neither biases nor norms), and
`moments` is what Adam's are kept as, "float32" or "bfloat16" (rounded by chance, half of the memory).
"""

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
    clip_norm: float = 0.0
    decay: str = "all"

    def core(self):
        return _core.Optimizer("sgd", self.lr, self.momentum, self.nesterov, self.weight_decay,
                               clip_norm=self.clip_norm, decay=self.decay)


@dataclass(frozen=True)
class Adam:
    """Adam; weight decay is added to the gradient."""

    lr: float = 1e-3
    betas: tuple = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip_norm: float = 0.0
    decay: str = "all"
    moments: str = "float32"

    def core(self):
        return _core.Optimizer("adam", self.lr, 0.0, False, self.weight_decay, *self.betas, self.eps, self.clip_norm,
                               self.decay, self.moments)


@dataclass(frozen=True)
class AdamW:
    """Adam with weight decay that is taken off the parameter."""

    lr: float = 1e-3
    betas: tuple = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 1e-2
    clip_norm: float = 0.0
    decay: str = "all"
    moments: str = "float32"

    def core(self):
        return _core.Optimizer("adamw", self.lr, 0.0, False, self.weight_decay, *self.betas, self.eps, self.clip_norm,
                               self.decay, self.moments)


def core_of(optimizer):
    """The engine's optimizer of one of these; of none, SGD with its defaults."""
    if optimizer is None:
        return SGD().core()
    if not isinstance(optimizer, (SGD, Adam, AdamW)):
        raise _core.UserError(f"optimizer is a {type(optimizer).__name__}; give ps.SGD, ps.Adam or ps.AdamW")
    return optimizer.core()
