"""ONNX files as models, and ONNX's own tests through penstock.onnx_backend."""

import pathlib
import warnings

import numpy as np
import onnx
import penstock as ps
import penstock.onnx_backend as backend
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

LIST = pathlib.Path(__file__).parents[1] / "onnx_backend/passing.txt"


def node_cases():
    """By name: the model, data sets of arrays, tolerances."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return {case.name: (case.model, case.data_sets, case.rtol, case.atol) for case in collect_testcases(None)
                if case.model is not None}


def converted_cases():
    """Those from PyTorch, which the package has as files."""
    cases = {}
    for kind in ("pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            folder = pathlib.Path(case.model_dir)

            def arrays(data, what):
                return [numpy_helper.to_array(onnx.TensorProto.FromString((data / f"{what}_{i}.pb").read_bytes()))
                        for i in range(len(list(data.glob(f"{what}_*.pb"))))]

            sets = [(arrays(data, "input"), arrays(data, "output")) for data in sorted(folder.glob("test_data_set_*"))]
            cases[case.name] = onnx.load(folder / "model.onnx"), sets, case.rtol, case.atol
    return cases


def plain(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def outcome(model, sets, rtol, atol):
    """pass, refused or wrong, and why."""
    try:
        for inputs, outputs in sets:
            rep = backend.prepare(model)
            for have, want in zip(rep.run([plain(each) for each in inputs]), map(plain, outputs)):
                if have.dtype != want.dtype or have.shape != want.shape:
                    return "wrong", f"{have.dtype} {have.shape} where {want.dtype} {want.shape} is needed"
                np.testing.assert_allclose(have.astype(np.float64), want.astype(np.float64), rtol, atol)
    except ps.UserError as error:
        return "refused", str(error)
    except Exception as error:  # any other is a mistake of the backend
        return "wrong", f"{type(error).__name__}: {error}"
    return "pass", ""


def has_floats(sets):
    return any(getattr(plain(each), "dtype", None) is not None and "float" in str(plain(each).dtype)
               for _, outputs in sets for each in outputs)


@pytest.mark.parametrize("collect, least", [(node_cases, 650), (converted_cases, 105)])
def test_onnx_cases(collect, least):
    """Cases with floating-point outputs: those of the list pass, none is wrong. `python test_onnx.py` writes the list."""
    listed, wrong, passed = set(LIST.read_text().split()), [], 0
    for name, case in collect().items():
        if not has_floats(case[1]):
            continue
        word, reason = outcome(*case)
        passed += word == "pass"
        if word == "wrong" or word == "refused" and name in listed:
            wrong.append(f"{word} {name}: {reason}")
    assert not wrong, "\n".join(wrong)
    assert passed >= least


def line(path, batch="N"):
    """logits = x weight + bias, of a batch that is free."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.standard_normal((6, 3)).astype(np.float32), "weight")
    bias = numpy_helper.from_array(np.zeros(3, np.float32), "bias")
    graph = helper.make_graph([helper.make_node("Gemm", ["x", "weight", "bias"], ["logits"])], "line",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 6])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 3])], [weight, bias])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    return rng.standard_normal((8, 6)).astype(np.float32), rng.integers(0, 3, 8), numpy_helper.to_array(weight)


def test_a_file_is_trained_and_written_back(tmp_path):
    path, out = str(tmp_path / "line.onnx"), str(tmp_path / "out.onnx")
    x, labels, weight = line(path)
    with ps.Session(path, batch=8, loss="cross_entropy", memory="64MiB", optimizer=ps.SGD(lr=0.5)) as session:
        assert np.array_equal(session.state_dict()["weight"], weight)
        logits = x @ weight
        share = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        wanted = weight - 0.5 * x.T @ (share - np.eye(3)[labels]) / 8
        assert session.step(x, labels) == pytest.approx(-np.log(share[np.arange(8), labels]).mean(), rel=1e-5)
        np.testing.assert_allclose(session.state_dict()["weight"], wanted, rtol=1e-4, atol=1e-6)
        session.save(out)
        trained = session.state_dict()
    saved = {each.name: numpy_helper.to_array(each) for each in onnx.load(out).graph.initializer}
    assert np.array_equal(saved["weight"], trained["weight"]) and np.array_equal(saved["bias"], trained["bias"])
    with ps.Session(pathlib.Path(out), example=(x,), memory="64MiB") as session:
        np.testing.assert_allclose(session.run(x)["logits"], x @ trained["weight"] + trained["bias"], rtol=1e-4, atol=1e-5)


def test_files_that_are_refused(tmp_path):
    path = tmp_path / "line.onnx"
    line(path)
    whole = path.read_bytes()
    for damaged in (b"", whole[:40], b"\xff" * 100):
        (tmp_path / "damaged.onnx").write_bytes(damaged)
        with pytest.raises(ps.UserError) as raised:
            ps.Session(str(tmp_path / "damaged.onnx"), memory="64MiB")
        assert "\n" not in str(raised.value)
    for arguments, message in ((dict(loss="best"), "best"), (dict(loss=dict(name="mse")), "is a name")):
        with pytest.raises(ps.UserError, match=message):
            ps.Session(path, memory="64MiB", **arguments)
    with pytest.raises(ps.UserError, match="missing.onnx"):
        ps.Session("missing.onnx", memory="64MiB")


def test_hostile_files(tmp_path):
    """What C++ refuses comes out as one line, and the process lives on."""

    def refusal(nodes, weights=()):
        graph = helper.make_graph(nodes, "hostile", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
        path = tmp_path / "inner" / "hostile.onnx"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString())
        with pytest.raises(ps.UserError) as raised:
            ps.Session(path, memory="64MiB")
        assert "\n" not in str(raised.value)
        return str(raised.value)

    node = helper.make_node
    assert "(Nonsense)" in refusal([node("Nonsense", ["x"], ["y"])])
    assert "cycle" in refusal([node("Add", ["x", "y"], ["z"]), node("Relu", ["z"], ["y"])])
    huge = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**62, 2**62])
    assert "too large" in refusal([node("MatMul", ["x", "w"], ["y"])], [huge])
    assert "[2, 6]" in refusal([node("MatMul", ["x", "w"], ["y"])], [numpy_helper.from_array(np.ones((5, 3), np.float32), "w")])
    (tmp_path / "secret.bin").write_bytes(bytes(72))
    away = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[6, 3], data_location=TensorProto.EXTERNAL)
    away.external_data.add(key="location", value="../secret.bin")
    assert "outside of the folder" in refusal([node("MatMul", ["x", "w"], ["y"])], [away])


def test_a_model_of_free_shapes_runs_for_each(tmp_path):
    path = tmp_path / "line.onnx"
    x, _, weight = line(path)
    rep = backend.prepare(onnx.load(path))
    for rows in (8, 2, 8):
        np.testing.assert_allclose(rep.run([x[:rows]])[0], x[:rows] @ weight, rtol=1e-4, atol=1e-5)
    assert not backend.supports_device("CUDA") and backend.supports_device("CPU:0")
    with pytest.raises(ps.UserError, match="CUDA"):
        backend.prepare(onnx.load(path), "CUDA")


if __name__ == "__main__":
    cases = {**node_cases(), **converted_cases()}
    LIST.write_text("".join(f"{name}\n" for name in sorted(cases) if has_floats(cases[name][1]) and outcome(*cases[name])[0] == "pass"))
