"""What is wrong is said in one line, and nothing is lost."""

import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import penstock as ps
import pytest
from networks import batch_of, deep, perceptron


@pytest.fixture
def session():
    return ps.Session(perceptron(), memory="256MiB")


def refused(message, call, kind=ps.UserError):
    with pytest.raises(kind, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_kinds():
    assert issubclass(ps.UserError, ValueError) and issubclass(ps.BudgetTooSmall, ps.UserError)
    assert issubclass(ps.RunError, RuntimeError)


def test_inputs(session):
    x, labels = batch_of(session.network)
    before = session.state_sha256()
    refused(r"shape \[15, 12\], the network takes \[16, 12\]", lambda: session.step(x[:15], labels))
    refused("float64, the network takes float32", lambda: session.step(x.astype(np.float64), labels))
    refused("float32, the network takes int32", lambda: session.step(x, labels.astype(np.float32)))
    refused("is missing", lambda: session.step(x))
    refused("no input 'y'", lambda: session.step(x, y=labels))
    refused("given twice", lambda: session.step(x, labels, x=x))
    refused("2 inputs", lambda: session.step(x, labels, labels))
    refused("nan", lambda: session.step(np.full_like(x, np.nan), labels))
    refused("the network knows 0 to 4", lambda: session.step(x, labels + 5))
    refused("32 bits", lambda: session.step(x, labels + 2**40))
    refused("give float32", lambda: session.step(np.array([object()]), labels))
    assert session.state_sha256() == before
    session.step(x, labels)


def test_options():
    refused("no size", lambda: ps.Session(perceptron(), memory="much"))
    refused("not both", lambda: ps.Session(perceptron(), memory="1GiB", process_memory="1GiB"))
    refused("policy 'best' is not known", lambda: ps.Session(perceptron(), policy="best"))
    refused("resnet50", lambda: ps.Session("resnet5", batch=1))
    refused("no network", lambda: ps.Session(17))
    refused("batch of 16, not 8", lambda: ps.Session(perceptron(), batch=8))
    refused("ps.SGD", lambda: ps.Session(perceptron(), optimizer="sgd"))
    refused("finish", lambda: ps.Session(ps.NetworkBuilder("open")))


def test_a_budget_that_is_too_small():
    with pytest.raises(ps.BudgetTooSmall) as raised:
        ps.Session(deep(), memory="2MiB")
    assert raised.value.budget_bytes == 2 * 2**20
    advised = raised.value.advised_bytes
    assert advised > 2 * 2**20
    ps.Session(deep(), memory=advised, tier="ram").step(*batch_of(deep()))


def test_a_builder_names_the_layer():
    net = ps.NetworkBuilder("wrong")
    x = net.input("x", [2, 3])
    refused("first", lambda: net.matmul(x, net.parameter("first", [4, 5]), name="first.product"))


def test_a_mask_that_is_trained():
    net = ps.NetworkBuilder("positions")
    x, wanted = net.input("x", [2, 1, 3, 4]), net.input("wanted", [2], "int32")
    y = net.attention(x, x, x, net.parameter("bias", [1, 1, 3, 3]), 1, 1)
    net.classifier(net.linear("head", net.reshape(y, [2, 12]), 2), wanted)
    network = net.finish()
    refused("mask of attention.*depends on parameters", lambda: ps.Session(network, memory="256MiB"))
    ps.Session(network, memory="256MiB", freeze="bias")


def test_two_threads():
    network = deep(64)
    session = ps.Session(network, memory="1GiB", threads=1)
    arrays, refusals = batch_of(network), []
    started = threading.Event()

    def train():
        started.set()
        for _ in range(10):
            try:
                session.step(*arrays)
            except ps.UserError as error:  # the other thread was first
                refusals.append(str(error))

    thread = threading.Thread(target=train)
    thread.start()
    started.wait()
    while thread.is_alive():
        try:
            session.plan
        except ps.UserError as error:
            refusals.append(str(error))
        time.sleep(0.001)
    thread.join()
    assert refusals and "one thread at a time" in refusals[0]
    done = session.steps_done
    session.step(*arrays)
    assert session.steps_done == done + 1


def test_after_an_error(tmp_path):
    """A disk that takes no more ends the session; whatever is asked of it then is refused, and a new one works."""
    network = deep(64)
    arrays = batch_of(network)
    options = dict(memory="48MiB", policy="window", swap_dir=tmp_path)
    session = ps.Session(network, **options)
    assert session.plan.step.swapped_out_bytes > 0
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        refused("to the tier failed", lambda: session.step(*arrays), ps.RunError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    for call in (lambda: session.step(*arrays), session.state_dict, session.state_sha256):
        refused("session has ended.*make a new one", call)
    session.close()
    ps.Session(network, **options).step(*arrays)


def test_closed(session):
    with session:
        pass
    refused("closed", lambda: session.step(*batch_of(session.network)))
    gc.collect()


def test_ctrl_c_ends_a_step_cleanly():
    network = deep(64)
    session = ps.Session(network, memory="1GiB", threads=1)
    arrays = batch_of(network)
    session.step(*arrays)
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            session.step(*arrays)
    timer.join()
    done = session.steps_done
    session.step(*arrays)
    assert session.steps_done == done + 1


def test_a_program_that_ends_with_an_open_session():
    code = "import penstock as ps; s = ps.Session('lenet', batch=2, memory='64MiB'); print('made')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "made\n", "")
