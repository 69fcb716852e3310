import os
import re
import shutil
import subprocess
import sys
import types

import penstock as ps
import pytest
from networks import batch_of, perceptron
from penstock.progress import ProgressLine


def test_the_loop_of_the_command_line():
    seen = []
    result = ps.train("lenet", "synthetic", batch=8, steps=4, optimizer=ps.SGD(lr=0.01), progress=False,
                      on_step=lambda p: seen.append((p.step, p.loss)))
    assert [step for step, _ in seen] == [1, 2, 3, 4] and [loss for _, loss in seen] == result.loss
    again = ps.train("lenet", "synthetic", batch=8, steps=4, optimizer=ps.SGD(lr=0.01), progress=False)
    assert again.weights_sha256 == result.weights_sha256


def test_a_loader(tmp_path):
    batches = [batch_of(perceptron(), seed) for seed in range(3)]
    rates = []
    result = ps.train(perceptron(), batches, epochs=4, memory="256MiB", optimizer=ps.SGD(lr=0.1), progress=False,
                      schedule=ps.Schedule("cosine"), on_step=lambda r: rates.append(r.session.learning_rate),
                      checkpoint=tmp_path / "c")
    assert result.steps == 12 and rates[0] > rates[-1]
    assert result.loss[-3] < result.loss[0]  # the same batch
    assert (tmp_path / "c").is_dir()
    assert ps.train(perceptron(), batches, steps=5, memory="256MiB", progress=False).steps == 5


def test_what_a_callback_raises_ends_training():
    def stop(_):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        ps.train("lenet", "synthetic", batch=4, steps=50, progress=False, on_step=stop)
    with pytest.raises(ps.UserError, match="process_memory"):
        ps.train("lenet", "synthetic", batch=4, steps=1, memory="1GiB", progress=False)


def test_progress_in_a_log(capfd):
    ps.train("lenet", "synthetic", batch=4, steps=2)
    assert "step 2/2  loss" in capfd.readouterr().err


SCRIPT = """
import os
import numpy as np, penstock as ps

rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
session = ps.Session("lenet", batch=4, memory="64MiB", threads=1, optimizer=ps.SGD(lr=0.05))
random = np.random.default_rng(rank)
step = lambda: session.step(random.standard_normal((4, 1, 28, 28)).astype(np.float32), np.arange(4))
losses = [step() for _ in range(3)]
print(session.state_sha256(), flush=True)
if FAIL and rank == 1:
    raise SystemError("one rank fails")
step()
"""


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
@pytest.mark.parametrize("fail", [False, True])
def test_ranks(tmp_path, fail):
    script = tmp_path / "train.py"
    script.write_text(f"FAIL = {fail}\n" + SCRIPT)
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    result = subprocess.run(["mpirun", "-n", "2", sys.executable, str(script)], capture_output=True, text=True,
                            env=environment, timeout=300)
    # What two ranks print may come without a line end between.
    sums = re.findall("[0-9a-f]{64}", result.stdout)
    assert len(sums) == 2 and sums[0] == sums[1], result.stderr
    assert (result.returncode != 0) == fail
    if fail:
        assert "rank 1: " in result.stderr and "one rank fails" in result.stderr


def test_progress_in_a_notebook(monkeypatch):
    """One place on the page that is written anew, as IPython has it."""
    shown = []
    handle = types.SimpleNamespace(update=lambda what: shown.append(what.data))

    def display(what, display_id):
        shown.append(what.data)
        return handle

    page = types.ModuleType("IPython.display")
    page.HTML, page.display = lambda data: types.SimpleNamespace(data=data), display
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    line = ProgressLine()
    line.tell(1, 2, 0.5, 10.0, 3.0)
    line.tell(2, 2, 0.25, 10.0)
    line.end()
    assert len(shown) == 2 and "step 1/2" in shown[0] and "loss 0.2500" in shown[1]
