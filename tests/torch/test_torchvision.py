"""torchvision's networks against PyTorch in float64: error at most three times that of PyTorch's own float32.

Networks with ReLU or maximum pooling have kinks: which way an input within rounding of 0 goes is chance, for Penstock as
for PyTorch. So two of three batches must keep the bound, and each network without its kinks must keep it at once.
"""

import pytest
import torch
import torchvision.models as models
from steps import check_bits, check_error, without_kinks
from torchvision.models import segmentation
from torchvision.ops import StochasticDepth

PLAIN = dict(weights=None, num_classes=10)
# Of images: to compare with float64, and to train within a third of the memory. inception_v3's second head takes no less
# than 299 x 299, maxvit_t no less than 224 x 224.
SMALL, LARGE = 64, 224
EDGES = {"inception_v3": (299, 299), "maxvit_t": (224, 224), "vgg11_bn": (32, 224)}
# By name: how many images make a third of the memory enough. The floor is what the largest op works on, whatever the
# batch for a layer with many weights (alexnet, vgg11_bn): so these need more images.
NETWORKS = {
    "alexnet": 128,
    "vgg11_bn": 16,
    "squeezenet1_1": 32,
    "googlenet": 8,
    "inception_v3": 4,
    "mobilenet_v2": 32,
    "mobilenet_v3_large": 8,
    "shufflenet_v2_x1_0": 32,
    "mnasnet1_0": 8,
    "efficientnet_b0": 32,
    "efficientnet_v2_s": 4,
    "regnet_y_400mf": 8,
    "resnext50_32x4d": 4,
    "wide_resnet50_2": 4,
    "convnext_tiny": 4,
    "vit_b_16": 4,
    "swin_t": 4,
    "maxvit_t": 2,
    "fcn_resnet50": 4,
    "deeplabv3_resnet50": 4,
}
# squeezenet1_1 takes no less than 0.41 of its memory, with 4 images or with 128.
SHARE = {"squeezenet1_1": 0.45}
ARGUMENTS = {"inception_v3": dict(init_weights=False), "googlenet": dict(init_weights=False),
             "fcn_resnet50": dict(weights_backbone=None), "deeplabv3_resnet50": dict(weights_backbone=None)}
SIZED = {"vit_b_16": lambda edge: dict(image_size=edge), "maxvit_t": lambda edge: dict(input_size=(edge, edge))}
OWN_LOSS = ("googlenet", "inception_v3", "fcn_resnet50", "deeplabv3_resnet50")
ALWAYS = {"test_one_step": ("squeezenet1_1", "mobilenet_v3_large"), "test_without_kinks": ("googlenet", "efficientnet_b0"),
          "test_a_third_of_the_memory": ("mobilenet_v2", "swin_t")}


def networks(test):
    return [name if name in ALWAYS[test] else pytest.param(name, marks=pytest.mark.only_with_all) for name in NETWORKS]


class WithLoss(torch.nn.Module):
    """The loss of networks that have a second head for training, or give a dictionary."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images, labels):
        given = self.network(images)
        entropy = torch.nn.functional.cross_entropy
        if isinstance(given, dict):
            return entropy(given["out"], labels)
        return entropy(given[0], labels) + 0.3 * sum(entropy(aux, labels) for aux in given[1:])


def made(name, edge):
    """The network with what is random turned off, so that steps can be compared."""
    torch.manual_seed(3)
    module = getattr(segmentation if "_resnet50" in name and "wide" not in name else models, name)(
        **PLAIN, **ARGUMENTS.get(name, {}), **SIZED.get(name, lambda _: {})(edge))
    for each in module.modules():
        if isinstance(each, (torch.nn.Dropout, StochasticDepth)):
            each.p = 0.0
    return WithLoss(module) if name in OWN_LOSS else module


def drawing(name, batch, edge):
    shape = (batch, edge, edge) if name in OWN_LOSS[2:] else (batch,)
    return lambda: (torch.randn(batch, 3, edge, edge), torch.randint(0, 10, shape))


def losses(name):
    return (lambda m, x, y: m(x, y), None) if name in OWN_LOSS else (None, "cross_entropy")


def small(name):
    edge = EDGES.get(name, (SMALL, LARGE))[0]
    return made(name, edge), drawing(name, 2 if name == "maxvit_t" else 4, edge)


@pytest.mark.parametrize("name", networks("test_one_step"))
def test_one_step(name):
    check_error(name, *small(name), *losses(name), draws=3)


@pytest.mark.parametrize("name", networks("test_without_kinks"))
def test_without_kinks(name):
    module, draw = small(name)
    with without_kinks(module):
        check_error(name + ", no kinks", module, draw, *losses(name))


@pytest.mark.parametrize("name", networks("test_a_third_of_the_memory"))
def test_a_third_of_the_memory(name):
    edge = EDGES.get(name, (SMALL, LARGE))[1]
    check_bits(name, made(name, edge), drawing(name, NETWORKS[name], edge), losses(name)[1], SHARE.get(name, 1 / 3))
