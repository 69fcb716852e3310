"""Trains neural networks that do not fit in memory.

>>> import numpy as np, penstock as ps
>>> session = ps.Session("lenet", batch=4, memory="64MiB", optimizer=ps.SGD(lr=0.01))
>>> images, labels = np.zeros((4, 1, 28, 28), np.float32), np.array([1, 2, 3, 4])
>>> first = session.step(images, labels)
>>> session.step(images, labels) < first
True
"""

from ._core import (BudgetTooSmall, ForecastTable, ModelInfo, Network, NetworkBuilder, Progress, RunError, Schedule,
                    StepStats, TrainingResult, UserError, Value, version)
from .optimizers import SGD, Adam, AdamW
from .plans import Plan, plan
from .session import Report, Session
from .training import Trained, train

__version__ = version()
__all__ = ["Adam", "AdamW", "BudgetTooSmall", "ForecastTable", "ModelInfo", "Network", "NetworkBuilder", "Plan", "Progress",
           "Report", "RunError", "SGD", "Schedule", "Session", "StepStats", "Trained", "TrainingResult", "UserError",
           "Value", "models", "plan", "train", "version"]


def models():
    """The built-in models with their defaults.

    >>> import penstock as ps
    >>> "resnet50" in [model.name for model in ps.models()]
    True
    """
    from . import _core

    return _core.list_models()
