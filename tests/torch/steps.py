"""One SGD step by PyTorch and by Penstock, to be compared."""

import contextlib
import copy

import numpy as np
import penstock as ps
import pytest
import torch
from torch import nn

RATE = 0.1


def by_torch(module, images, labels, dtype, loss):
    """What the step adds to each parameter."""
    module = copy.deepcopy(module).to(dtype).train()
    before = {name: value.detach().clone() for name, value in module.named_parameters()}
    loss(module, images.to(dtype) if images.is_floating_point() else images, labels).backward()
    torch.optim.SGD(module.parameters(), RATE).step()
    return {name: (value.detach() - before[name]).double().numpy() for name, value in module.named_parameters()}


def by_penstock(session, images, labels, names):
    before = session.state_dict()
    session.step(images, labels)
    after = session.state_dict()
    return {name: after[name].double().numpy() - before[name].double().numpy() for name in names}


def error_of(update, exact):
    """Of all parameters together, as a share of the exact update."""
    wrong = sum(((update[name] - exact[name]) ** 2).sum() for name in exact)
    return float(np.sqrt(wrong / sum((value**2).sum() for value in exact.values())))


def _session(module, images, labels, loss, memory, **options):
    return ps.Session(module, memory=memory, example=(images, labels), loss=loss, optimizer=ps.SGD(lr=RATE, momentum=0.9),
                      evaluation=False, record=False, **options)


def compare(module, images, labels, loss=None, session_loss="cross_entropy"):
    """The errors of Penstock and of PyTorch's own float32."""
    loss = loss or (lambda m, x, y: nn.functional.cross_entropy(m(x), y))
    exact = by_torch(module, images, labels, torch.float64, loss)
    theirs = error_of(by_torch(module, images, labels, torch.float32, loss), exact)
    with _session(module, images, labels, session_loss, "16GiB") as session:
        return error_of(by_penstock(session, images, labels, exact), exact), theirs


def check_error(name, module, draw, loss=None, session_loss="cross_entropy", draws=1):
    """Error at most three times that of PyTorch's own float32, in most of an odd number of draws. One is enough for a
    module whose gradient is continuous, see without_kinks()."""
    bad, needed = [], draws // 2 + 1
    for seed in range(draws):
        torch.manual_seed(seed)
        ours, theirs = compare(module, *draw(), loss, session_loss)
        print(f"\n| {name} | {ours:.2e} | {theirs:.2e} | {ours / theirs:.2f} |")
        bad.append(ours > 3 * theirs)
        if max(bad.count(False), bad.count(True)) == needed:
            break  # the draws that are left cannot change what most are
    assert bad.count(True) < needed, f"{name}: error {ours:.2e}, of PyTorch's float32 {theirs:.2e}"


def check_bits(name, module, draw, session_loss="cross_entropy", share=1 / 3):
    """A step within a share of the memory that the network takes gives the same bits."""
    torch.manual_seed(0)
    images, labels = draw()
    with _session(module, images, labels, session_loss, "16GiB") as session:
        needed = session.plan.in_memory_bytes
        session.step(images, labels)
        bits = session.state_sha256()
    with _session(module, images, labels, session_loss, int(share * needed), tier="ram") as session:
        peak = session.plan.peak_bytes
        session.step(images, labels)
        assert session.state_sha256() == bits, f"{name}: the result depends on the memory"
    assert peak <= share * needed
    print(f"\n| {name} | {len(images)} | {needed / 2**20:.0f} MiB | {peak / 2**20:.0f} MiB | {peak / needed:.2f} |")


_SMOOTH = {nn.ReLU: nn.SiLU, nn.ReLU6: nn.SiLU, nn.Hardswish: nn.SiLU, nn.Hardsigmoid: nn.Sigmoid}


def _replace(module):
    for name, child in module.named_children():
        if type(child) in _SMOOTH:
            setattr(module, name, _SMOOTH[type(child)]())
        elif isinstance(child, nn.MaxPool2d):
            setattr(module, name, nn.AvgPool2d(child.kernel_size, child.stride, child.padding, child.ceil_mode,
                                               count_include_pad=False))
        else:
            _replace(child)


@contextlib.contextmanager
def without_kinks(module):
    """The module with SiLU in place of ReLU and average in place of maximum pooling, so that its gradient is continuous.

    Where it is not, an input within rounding of 0 (or two within rounding of the maximum) goes either way: googlenet's
    update in float64 for four images of 64 x 64 changes by 4e-3 when the images change by 1e-7. So with kinks one float32
    may have an error of 1e-3 where another has 1e-5, and that hides whatever is smaller. Without kinks errors are near 1e-5.
    """
    _replace(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nn.functional, "relu", lambda x, inplace=False: nn.functional.silu(x))
        patch.setattr(nn.functional, "max_pool2d", lambda x, kernel_size, stride: nn.functional.avg_pool2d(x, kernel_size, stride))
        yield module
