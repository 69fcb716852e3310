import threading

import numpy as np
import penstock as ps
import pytest
from networks import BATCH, batch_of, deep, perceptron


def session_of(network=None, **options):
    return ps.Session(network or perceptron(), **{"memory": "256MiB", "optimizer": ps.SGD(lr=0.1, momentum=0.9), **options})


def test_a_step_is_the_rule_of_sgd():
    network = perceptron()
    x, labels = batch_of(network)
    session = session_of(network, optimizer=ps.SGD(lr=0.5))
    before = {k: v.astype(np.float64) for k, v in session.state_dict().items()}
    loss = session.step(x, labels)
    hidden = np.maximum(x @ before["hidden.weight"].T + before["hidden.bias"], 0)
    logits = hidden @ before["answer.weight"].T + before["answer.bias"]
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    rows = np.arange(BATCH)
    assert loss == pytest.approx(-np.log(shares[rows, labels]).mean(), rel=1e-5)
    shares[rows, labels] -= 1
    np.testing.assert_allclose(session.state_dict()["answer.weight"], before["answer.weight"] - 0.5 * shares.T @ hidden / BATCH,
                               rtol=1e-4, atol=1e-6)


def test_the_result_does_not_depend_on_the_budget():
    network = deep(96)
    wide = session_of(network, memory="1GiB")
    needed = wide.plan.in_memory_bytes
    narrow = session_of(network, memory=needed * 6 // 10, tier="ram")
    assert narrow.plan.policy != "keep"
    for seed in range(3):
        arrays = batch_of(network, seed)
        assert wide.step(*arrays) == narrow.step(*arrays)
    assert wide.state_sha256() == narrow.state_sha256()


def test_micro_batches_are_one_step():
    x, labels = batch_of(perceptron())
    whole = session_of(perceptron())
    parts = session_of(perceptron(BATCH // 4), accumulate=4)
    assert parts.batch == BATCH
    for _ in range(3):
        assert parts.step(x, labels) == pytest.approx(whole.step(x, labels), rel=1e-5)
    for name, value in whole.state_dict().items():
        np.testing.assert_allclose(parts.state_dict()[name], value, rtol=1e-4, atol=1e-6)
    with pytest.raises(ps.UserError, match="a step of 4 micro-batches takes"):
        parts.step(x[:4], labels[:4])
    assert parts.run(x[:4], labels[:4])["logits"].shape == (4, 5)
    named = ps.Session("lenet", batch=8, accumulate=2, memory="128MiB")
    assert (named.batch, named.network.inputs[0].shape[0]) == (8, 4)
    with pytest.raises(ps.UserError, match="a batch of 8 does not divide into 3"):
        ps.Session("lenet", batch=8, accumulate=3, memory="128MiB")


def test_gradients_are_clipped():
    x, labels = batch_of(perceptron())
    session = session_of(optimizer=ps.SGD(lr=1.0, clip_norm=0.01))
    before = session.state_dict()
    session.step(x, labels)
    changes = [session.state_dict()[name] - before[name] for name in before]
    assert session.gradient_norm > 0.01
    assert np.sqrt(sum((change.astype(np.float64) ** 2).sum() for change in changes)) == pytest.approx(0.01, rel=1e-3)


def test_text_models_take_a_sequence():
    network = ps.Network.model("gpt2", batch=2, classes=64, sequence=16)
    assert network.inputs[0].shape == (2, 16)
    plan = ps.plan("gpt2", batch=2, classes=64, sequence=16, memory="4GiB")
    assert "tokens/s" in str(plan)
    with pytest.raises(ps.UserError, match="has no sequence"):
        ps.Network.model("lenet", sequence=16)


def test_inputs_by_name_and_of_any_integer():
    x, labels = batch_of(perceptron())
    by_order, by_name, narrow = session_of(), session_of(), session_of()
    assert by_order.step(x, labels) == by_name.step(labels=labels, x=x) == narrow.step(x, labels.astype(np.int32))


def test_arrays_that_are_not_in_one_piece():
    x, labels = batch_of(perceptron())
    turned = np.ascontiguousarray(x.T).T
    assert not turned.flags.c_contiguous
    assert session_of().step(x, labels) == session_of().step(turned, labels)


def test_evaluation_changes_nothing():
    session = session_of()
    x, labels = batch_of(session.network)
    before = session.state_sha256()
    outputs = session.run(x, labels)
    assert outputs["logits"].shape == (BATCH, 5) and outputs["loss"] > 0
    assert outputs["correct"][0] == (outputs["logits"].argmax(1) == labels).sum()
    assert set(session.run(x)) == {"logits"}
    assert session.state_sha256() == before and session.steps_done == 0


def test_a_learning_rate_that_changes():
    session = session_of(optimizer=ps.SGD(lr=0.1))
    session.learning_rate = 0
    before = session.state_sha256()
    session.step(*batch_of(session.network))
    assert session.state_sha256() == before
    session.learning_rate = 0.1
    session.step(*batch_of(session.network))
    assert session.state_sha256() != before
    with pytest.raises(ps.UserError, match="learning rate"):
        session.learning_rate = float("nan")


def test_a_learning_rate_of_zero_is_zero():
    session = session_of(optimizer=ps.SGD(lr=0.0))
    before = session.state_sha256()
    session.step(*batch_of(session.network))
    assert session.state_sha256() == before and session.learning_rate == 0


def test_optimizers_differ():
    sums = set()
    for optimizer in (ps.SGD(lr=0.01), ps.Adam(lr=0.01), ps.AdamW(lr=0.01)):
        session = session_of(optimizer=optimizer)
        session.step(*batch_of(session.network))
        sums.add(session.state_dict()["hidden.weight"].tobytes())
    assert len(sums) == 3


def test_frozen_parameters_stay():
    session = session_of(freeze="hidden.*")
    before = session.state_dict()
    session.step(*batch_of(session.network))
    after = session.state_dict()
    assert (before["hidden.weight"] == after["hidden.weight"]).all()
    assert (before["answer.weight"] != after["answer.weight"]).any()


def test_plan_and_its_display():
    session = session_of(deep())
    assert "deep batch 32" in str(session.plan)
    assert session.plan.peak_bytes <= 256 * 2**20
    assert "<table>" in session.plan._repr_html_()
    table = ps.plan(deep())
    assert len(table.budgets) > 1 and "MiB" in str(table) and "<table>" in table._repr_html_()
    refused = ps.plan(deep(), memory="1MiB")
    assert not refused.feasible and "cannot train within 1 MiB" in str(refused)


def test_a_report_leaves_the_session_alive(tmp_path):
    session = session_of()
    with pytest.raises(ps.UserError, match="before the first step"):
        session.report(tmp_path / "r.html")
    losses = [session.step(*batch_of(session.network)) for _ in range(2)]
    report = session.report(tmp_path / "r.html", trace=tmp_path / "t.json")
    assert "perceptron" in (tmp_path / "r.html").read_text() and (tmp_path / "t.json").exists()
    assert "iframe" in report._repr_html_()
    assert session.step(*batch_of(session.network)) < losses[0]


def test_the_lock_is_released_in_a_step():
    network = deep(64)
    session = session_of(network, memory="1GiB", threads=1)
    arrays, done, turns = batch_of(network), threading.Event(), [0]

    def train():
        for _ in range(3):
            session.step(*arrays)
        done.set()

    thread = threading.Thread(target=train)
    thread.start()
    while not done.wait(0.001):
        turns[0] += 1
    thread.join()
    assert turns[0] > 3  # a step that held the lock would let this thread in between two steps only


def test_models_are_listed():
    names = [model.name for model in ps.models()]
    assert "resnet50" in names and len(names) >= 15
    assert ps.Network.model("lenet", batch=2).inputs[0].shape == (2, 1, 28, 28)
    assert ps.Session("lenet", memory="64MiB", example=(np.zeros((3, 1, 28, 28), np.float32),)).batch == 3
