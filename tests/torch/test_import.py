"""What a module's parameters, buffers and losses become, and what is refused."""

import json
import threading

import numpy as np
import penstock as ps
import pytest
import torch
from steps import RATE, compare
from torch import nn


def session_of(module, example, loss="cross_entropy", **options):
    return ps.Session(module, **{"example": example, "loss": loss, "memory": "512MiB", "optimizer": ps.SGD(lr=RATE), **options})


def images_and_labels(batch=4, classes=5):
    torch.manual_seed(1)
    return torch.randn(batch, 3, 16, 16), torch.arange(batch) % classes


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(torch.relu_(self.norm(self.conv(x))).mean((2, 3)))


def test_layers_are_called_after_their_modules(tmp_path):
    images, labels = images_and_labels()
    session = session_of(nn.Sequential(Small(), nn.ReLU()), (images, labels))
    session.step(images, labels)
    session.report(trace=tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["name"] for event in events if event.get("cat") == "forward"}
    assert {"0.conv.conv", "0.norm.batch_norm", "0.head.linear"} <= names
    assert all(len(name) < 60 for name in names), names


def test_training_goes_back_into_the_module():
    torch.manual_seed(0)
    module, other = Small(), Small()
    images, labels = images_and_labels()
    session = session_of(module, (images, labels))
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(images), labels)
        loss.backward()
        optimizer.step()
        assert session.step(images, labels) == pytest.approx(loss.item(), rel=1e-4)
    other.load_state_dict(session.state_dict())
    for name, value in module.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value, rtol=1e-3, atol=1e-5)
    assert other.norm.num_batches_tracked == 3
    torch.testing.assert_close(torch.from_numpy(session.run(images)["output"]), module.eval()(images), rtol=1e-3, atol=1e-4)
    session.load_state_dict(module.state_dict())


def test_a_batch_of_another_size_than_the_examples():
    images, labels = images_and_labels(2)
    session = session_of(Small(), (images, labels), batch=6)
    assert session.batch == 6
    session.step(*images_and_labels(6))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 6), nn.Linear(6, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.embed(tokens))).flatten(0, 1)


def test_tied_weights_stay_tied():
    torch.manual_seed(0)
    module, tokens, labels = Tied(), torch.randint(0, 7, (4, 5)), torch.randint(0, 7, (20,))
    session = session_of(module, (tokens, labels))
    assert [info.name for info in session.network.parameters] == ["embed.weight"]
    session.step(tokens, labels)
    state = session.state_dict()
    assert torch.equal(state["embed.weight"], state["head.weight"])
    nn.functional.cross_entropy(module(tokens), labels).backward()
    torch.testing.assert_close(state["embed.weight"], module.embed.weight - RATE * module.embed.weight.grad)


def test_frozen_parameters():
    module = Small()
    module.conv.requires_grad_(False)
    images, labels = images_and_labels()
    session = session_of(module, (images, labels), optimizer=ps.Adam())
    before = session.state_dict()
    session.step(images, labels)
    after = session.state_dict()
    assert torch.equal(before["conv.weight"], after["conv.weight"])
    assert not torch.equal(before["head.weight"], after["head.weight"])
    assert not [name for name, _, kind in session._core.state() if kind == "optimizer" and "conv" in name]


class OwnLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 1)
        self.register_buffer("scale", torch.tensor([2.0]))

    def forward(self, x, wanted):
        error = self.line(x).squeeze(1) - self.scale * wanted
        return (error**2).mean()


def test_the_modules_own_loss():
    torch.manual_seed(0)
    module, x, wanted = OwnLoss(), torch.randn(8, 4), torch.randn(8)
    session = session_of(module, (x, wanted), loss=None)
    loss = module(x, wanted)
    assert session.step(x, wanted) == pytest.approx(loss.item(), rel=1e-5)
    loss.backward()
    torch.testing.assert_close(session.state_dict()["line.weight"], module.line.weight - RATE * module.line.weight.grad)
    assert torch.equal(session.state_dict()["scale"], module.scale)


@pytest.mark.parametrize("loss, function", [("mse", nn.functional.mse_loss), ("l1", nn.functional.l1_loss),
                                            ("smooth_l1", nn.functional.smooth_l1_loss),
                                            ("bce_with_logits", nn.functional.binary_cross_entropy_with_logits)])
def test_losses(loss, function):
    torch.manual_seed(0)
    module, x, wanted = nn.Linear(6, 3), torch.randn(8, 6), torch.rand(8, 3)
    ours, theirs = compare(module, x, wanted, lambda m, a, b: function(m(a), b.to(a.dtype)), loss)
    assert ours <= 3 * max(theirs, 1e-7)


def test_cross_entropy_with_its_options():
    torch.manual_seed(0)
    module, x, labels = nn.Linear(6, 3), torch.randn(8, 6), torch.tensor([0, 1, 2, -100, 1, 0, 2, 2])
    options = dict(label_smoothing=0.1, weight=torch.tensor([1.0, 2.0, 0.5]))
    session = session_of(module, (x, labels), loss=dict(name="cross_entropy", **options))
    assert session.step(x, labels) == pytest.approx(float(nn.functional.cross_entropy(module(x), labels, **options)), rel=1e-5)


def test_dropout_differs_from_step_to_step():
    torch.manual_seed(0)
    module, x, labels = nn.Sequential(nn.Dropout(0.5), nn.Linear(64, 5)), torch.randn(8, 64), torch.arange(8) % 5
    session = session_of(module, (x, labels), optimizer=ps.SGD(lr=0.0))
    assert session.step(x, labels) != session.step(x, labels)
    assert np.array_equal(session.run(x)["output"], session.run(x)["output"])


class Depth(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(6, 5)

    def forward(self, x):
        kept = torch.empty(x.shape[0], 1).bernoulli_(0.5).div_(0.5)
        return self.line(x) * kept


def test_what_is_drawn_is_drawn_in_each_step():
    module, x, labels = Depth(), torch.randn(8, 6), torch.arange(8) % 5
    session = session_of(module, (x, labels), optimizer=ps.SGD(lr=0.0))
    assert len({session.step(x, labels) for _ in range(4)}) > 1
    torch.testing.assert_close(torch.from_numpy(session.run(x)["output"]), module.line(x))


class Einsum(nn.Module):
    def __init__(self, equation, weight):
        super().__init__()
        self.equation, self.weight = equation, nn.Parameter(torch.randn(weight))

    def forward(self, x):
        return torch.einsum(self.equation, x, self.weight)


@pytest.mark.parametrize("equation, weight", [("nij,jk->nik", (5, 6)), ("nij,njk->nik", (4, 5, 6)), ("nij,nkj->nki", (4, 7, 5)),
                                              ("nij,jin->n", (5, 3, 4)), ("nij,kl->lnjki", (2, 3)), ("nij,ni->nij", (4, 3))])
def test_einsum(equation, weight):
    torch.manual_seed(0)
    module, x = Einsum(equation, weight), torch.randn(4, 3, 5)
    wanted = torch.randn_like(module(x))
    ours, theirs = compare(module, x, wanted, lambda m, a, b: nn.functional.mse_loss(m(a), b.to(a.dtype)), "mse")
    assert ours <= 3 * max(theirs, 1e-7)


@pytest.mark.parametrize("equation, weight", [("nij,ik->nk", (3, 6)), ("nij,...->nij", (1,)), ("nij,jj->ni", (5, 5))])
def test_einsums_that_are_refused(equation, weight):
    module, x = Einsum(equation, weight), torch.randn(4, 3, 5)
    with pytest.raises(ps.UserError, match="write it with matmul"):
        session_of(module, (x, torch.zeros_like(module(x))), loss="mse")


class Unknown(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)

    def forward(self, x):
        return torch.linalg.inv(self.line(x))  # nobody trains this


class OnData(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)

    def forward(self, x):
        return self.line(x) if x.sum() > 0 else x


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)

    def forward(self, x):
        return self.line(x) + torch.randn(4)


@pytest.mark.parametrize("module, message", [(Unknown(), r"linalg_inv.*test_import\.py:\d+.*nobody trains this"),
                                             (OnData(), "cannot export"), (Noisy(), r"randn.*test_import\.py")])
def test_refused_before_anything_runs(module, message):
    x, labels = torch.randn(4, 4), torch.arange(4)
    with pytest.raises(ps.UserError, match=message) as raised:
        session_of(module, (x, labels))
    assert "\n" not in str(raised.value)


def test_examples_and_losses_that_do_not_fit():
    x, labels = torch.randn(4, 6), torch.arange(4) % 3
    module = nn.Linear(6, 3)
    for arguments, message in ((dict(example=None), "needs example="), (dict(example=(x, labels), loss="best"), "'best' is not known"),
                               (dict(example=(x, labels[:, None])), "labels of shape"),
                               (dict(example=(x, labels), loss="mse"), "two arrays of one shape"),
                               (dict(example=(x,), loss=None), "not a loss"), (dict(example=(x.double(), labels)), "float64")):
        with pytest.raises(ps.UserError, match=message):
            session_of(module, **{"example": (x, labels), **arguments})
    with pytest.raises(ps.UserError, match="float64"):
        session_of(nn.Linear(6, 3).double(), (x, labels))
    session = session_of(module, (x, labels))
    with pytest.raises(ps.UserError, match="shape"):
        session.step(x[:2], labels[:2])


def test_a_session_goes_on_after_what_it_refuses():
    images, labels = images_and_labels()
    torch.manual_seed(0)
    session = session_of(Small(), (images, labels))
    torch.manual_seed(0)
    other = session_of(Small(), (images, labels))
    with_nan = images.clone()
    with_nan[0, 0, 0, 0] = float("nan")
    for bad, message in (((images[:3], labels[:3]), "shape"), ((images.double(), labels), "float64"), ((images.half(), labels), "float16"),
                         ((with_nan, labels), "nan"), ((images, labels.float()), "float32"), ((images, labels + 5), "0 to 4")):
        with pytest.raises(ps.UserError, match=message) as raised:
            session.step(*bad)
        assert "\n" not in str(raised.value)
    assert session.steps_done == 0
    assert session.step(images, labels) == other.step(images, labels)
    assert session.state_sha256() == other.state_sha256()


def test_two_threads():
    images, labels = images_and_labels(64)
    session, refusals, losses = session_of(Small(), (images, labels)), [], []

    def train():
        for _ in range(20):
            try:
                losses.append(session.step(images, labels))
            except ps.UserError as error:
                refusals.append(str(error))

    threads = [threading.Thread(target=train) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(losses) == session.steps_done and len(losses) + len(refusals) == 40
    assert all("one thread at a time" in refusal for refusal in refusals)


def test_micro_batches_train_as_pytorchs_whole_batch():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16 * 16, 5))
    images, labels = images_and_labels()
    session = session_of(module, (images, labels), accumulate=2, optimizer=ps.AdamW(lr=RATE, clip_norm=0.5))
    assert session.batch == 4
    optimizer = torch.optim.AdamW(module.parameters(), RATE)
    for _ in range(2):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(images), labels)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(module.parameters(), 0.5)
        optimizer.step()
        assert session.step(images, labels) == pytest.approx(loss.item(), rel=1e-4)
        assert session.gradient_norm == pytest.approx(norm.item(), rel=1e-3)
