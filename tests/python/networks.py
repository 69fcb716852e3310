"""Small networks and batches that several tests use."""

import numpy as np
import penstock as ps

BATCH, WIDTH, CLASSES = 16, 12, 5


def perceptron(batch=BATCH):
    net = ps.NetworkBuilder("perceptron")
    x, labels = net.input("x", [batch, WIDTH]), net.input("labels", [batch], "int32")
    hidden = net.relu(net.linear("hidden", x, 32))
    net.classifier(net.linear("answer", hidden, CLASSES), labels)
    return net.finish()


def deep(batch=32):
    """A chain of wide layers: what lies between forward and backward is more than the state."""
    net = ps.NetworkBuilder("deep")
    x, labels = net.input("images", [batch, 3, 32, 32]), net.input("labels", [batch], "int32")
    for i in range(8):
        x = net.relu(net.batch_norm(f"norm{i}", net.conv(f"conv{i}", x, 16, 3, padding=1)))
    net.classifier(net.linear("answer", net.flatten(net.global_avg_pool(x)), CLASSES), labels)
    return net.finish()


def batch_of(network, seed=0):
    random = np.random.default_rng(seed)
    arrays = []
    for port in network.inputs:
        if port.dtype == "float32":
            arrays.append(random.standard_normal(port.shape).astype(np.float32))
        else:
            arrays.append(random.integers(0, CLASSES, port.shape))
    return arrays
