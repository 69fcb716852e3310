import numpy as np
import penstock as ps
import pytest
from networks import batch_of, deep, perceptron


def session_of(network=None, **options):
    return ps.Session(network or perceptron(), memory="256MiB", optimizer=ps.Adam(lr=0.01), **options)


def test_a_state_dict_goes_from_one_session_to_another():
    network = deep(4)
    one, other = session_of(network), session_of(network, seed=7)
    one.step(*batch_of(network))
    state = one.state_dict()
    assert state["norm0.running_mean"].any()
    other.load_state_dict(state)
    for name, value in other.state_dict().items():
        np.testing.assert_array_equal(value, state[name])


def test_a_state_that_does_not_fit_changes_nothing():
    session = session_of()
    before, state = session.state_sha256(), session.state_dict()
    for name, value in list(state.items()):
        state[name] = value + 1
    for change, message in ((lambda s: s.pop("answer.bias"), "'answer.bias' is missing"),
                            (lambda s: s.update(more=np.zeros(1)), "'more' is no tensor"),
                            (lambda s: s.update({"answer.bias": np.zeros(6)}), r"shape \[5\], not \[6\]")):
        wrong = dict(state)
        change(wrong)
        with pytest.raises(ps.UserError, match=message):
            session.load_state_dict(wrong)
    assert session.state_sha256() == before


def test_files(tmp_path):
    one, other = session_of(), session_of(seed=3)
    one.save(tmp_path / "weights.safetensors")
    other.load(tmp_path / "weights.safetensors")
    assert (one.state_dict()["hidden.weight"] == other.state_dict()["hidden.weight"]).all()
    with pytest.raises(ps.UserError):
        one.load(tmp_path / "none.safetensors")


def test_a_checkpoint_goes_on_bit_for_bit(tmp_path):
    batches = [batch_of(perceptron(), seed) for seed in range(4)]
    whole, first, second = session_of(), session_of(), session_of(seed=9)
    for batch in batches:
        whole.step(*batch)
    for batch in batches[:2]:
        first.step(*batch)
    first.save_checkpoint(tmp_path / "c", {"epoch": 3})
    assert second.load_checkpoint(tmp_path / "c") == {"epoch": "3"}
    assert second.steps_done == 2
    for batch in batches[2:]:
        second.step(*batch)
    assert second.state_sha256() == whole.state_sha256()
