"""Writes the ONNX files that tests read: tests/onnx/files and tests/fuzz/corpus/onnx. Needs onnx and numpy.

small.onnx: a little convolutional network of images [batch, 1, 28, 28] and 10 classes, free batch.
external.onnx, external.bin: the same with its weights beside it.
small_input.npy, small_output.npy: images and the logits that onnx's own reference evaluator gives for them.
"""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ROOT / "onnx" / "files"
CORPUS = ROOT / "fuzz" / "corpus" / "onnx"


def weights(name, *shape, scale=0.3):
    generator = np.random.default_rng(sum(name.encode()))
    return numpy_helper.from_array((generator.standard_normal(shape) * scale).astype(np.float32), name)


def filled(name, value, *shape):
    return numpy_helper.from_array(np.full(shape, value, np.float32), name)


def integers(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(nodes, inputs, outputs, initializers, opset=18):
    graph = helper.make_graph(nodes, "made", inputs, outputs, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def small():
    node = helper.make_node
    nodes = [
        node("Conv", ["images", "conv1.weight"], ["c1"], "conv1", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c1", "bn.weight", "bn.bias", "bn.mean", "bn.var"], ["b1"], "bn"),
        node("HardSwish", ["b1"], ["h1"], "swish"),
        node("Conv", ["h1", "conv2.weight", "conv2.bias"], ["c2"], "conv2", group=8, auto_pad="SAME_UPPER"),
        node("Sigmoid", ["c2"], ["s2"], "gate"),
        node("Mul", ["h1", "s2"], ["m2"], "scaled"),
        node("Shape", ["m2"], ["shape"]),
        node("Slice", ["shape", "zero", "two"], ["outer"]),
        node("Concat", ["outer", "rest"], ["target"], axis=0),
        node("Reshape", ["m2", "target"], ["flat"], "flat"),
        node("ReduceMean", ["flat", "last"], ["pooled"], "pool", keepdims=0),
        node("Gemm", ["pooled", "fc.weight", "fc.bias"], ["logits"], "fc", transB=1),
    ]
    values = [
        weights("conv1.weight", 8, 1, 3, 3), filled("bn.weight", 1, 8), filled("bn.bias", 0.1, 8),
        filled("bn.mean", 0.05, 8), filled("bn.var", 0.9, 8), weights("conv2.weight", 8, 1, 3, 3),
        weights("conv2.bias", 8), weights("fc.weight", 10, 8), weights("fc.bias", 10),
        integers("zero", 0), integers("two", 2), integers("rest", -1), integers("last", 2),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 1, 28, 28])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])
    return model(nodes, [images], [logits], values)


def recurrent():
    node = helper.make_node
    nodes = [
        node("LSTM", ["x", "w", "r"], ["", "h"], hidden_size=3),
        node("Einsum", ["h", "k"], ["y"], equation="abc,cd->abd"),
        node("Softmax", ["y"], ["z"], axis=-1),
    ]
    values = [weights("w", 1, 12, 2), weights("r", 1, 12, 3), weights("k", 3, 4)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, "batch", 2])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, "batch", 4])
    return model(nodes, [x], [z], values)


def main():
    FILES.mkdir(parents=True, exist_ok=True)
    CORPUS.mkdir(parents=True, exist_ok=True)
    made = small()
    onnx.save(made, FILES / "small.onnx")
    images = np.random.default_rng(7).standard_normal((4, 1, 28, 28)).astype(np.float32)
    np.save(FILES / "small_input.npy", images)
    np.save(FILES / "small_output.npy", ReferenceEvaluator(made).run(None, {"images": images})[0])
    (CORPUS / "small.onnx").write_bytes(made.SerializeToString())
    (CORPUS / "recurrent.onnx").write_bytes(recurrent().SerializeToString())
    onnx.save(small(), FILES / "external.onnx", save_as_external_data=True, location="external.bin",
              size_threshold=0, convert_attribute=False)
    (CORPUS / "external.onnx").write_bytes((FILES / "external.onnx").read_bytes())


if __name__ == "__main__":
    main()
