"""The PyTorch side of Penstock's models: small instances with the same parameter names.

torchvision's own classes where they exist, shrunk layer by layer, and plain modules for the rest.
"""
import torch
import torchvision
from torch import nn


def scaled(channels, width):
    return max(1, int(channels * width + 0.5))


def shrink(model, width, classes):
    """Replaces each layer by one with `width` times the channels; image channels and classes stay."""
    last_linear = [m for m in model.modules() if isinstance(m, nn.Linear)][-1]
    first_conv = next(m for m in model.modules() if isinstance(m, nn.Conv2d))
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, nn.Conv2d):
                inputs = layer.in_channels if layer is first_conv else scaled(layer.in_channels, width)
                new = nn.Conv2d(inputs, scaled(layer.out_channels, width), layer.kernel_size, layer.stride,
                                layer.padding, bias=layer.bias is not None)
            elif isinstance(layer, nn.BatchNorm2d):
                new = nn.BatchNorm2d(scaled(layer.num_features, width), layer.eps, layer.momentum)
            elif isinstance(layer, nn.Linear):
                outputs = classes if layer is last_linear else scaled(layer.out_features, width)
                new = nn.Linear(scaled(layer.in_features, width), outputs)
            elif isinstance(layer, nn.Dropout):
                new = nn.Identity()
            else:
                continue
            setattr(module, name, new)
    return model


class LeNet(nn.Module):
    def __init__(self, channels, image_size, classes, width):
        super().__init__()
        a, b, c, d = (scaled(n, width) for n in (6, 16, 120, 84))
        edge = (image_size // 2 - 4) // 2
        self.conv1 = nn.Conv2d(channels, a, 5, padding=2)
        self.conv2 = nn.Conv2d(a, b, 5)
        self.fc1 = nn.Linear(b * edge * edge, c)
        self.fc2 = nn.Linear(c, d)
        self.fc3 = nn.Linear(d, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x).relu(), 2)
        x = nn.functional.max_pool2d(self.conv2(x).relu(), 2)
        return self.fc3(self.fc2(self.fc1(x.flatten(1)).relu()).relu())


class SmallResNet(nn.Module):
    """Three stages of torchvision's basic blocks behind a 3x3 stem."""

    def __init__(self, channels, classes, width, blocks):
        super().__init__()
        inputs = scaled(16, width)
        self.conv1 = nn.Conv2d(channels, inputs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(inputs)
        for stage in range(3):
            outputs = scaled(16 << stage, width)
            layers = []
            for i in range(blocks):
                stride = 2 if stage > 0 and i == 0 else 1
                downsample = None
                if stride != 1 or inputs != outputs:
                    downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                               nn.BatchNorm2d(outputs))
                layers.append(torchvision.models.resnet.BasicBlock(inputs, outputs, stride, downsample))
                inputs = outputs
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu()
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class Unit(nn.Module):
    """Convolution, batch norm, ReLU."""

    def __init__(self, inputs, outputs, kernel, stride=1, same=True):
        super().__init__()
        padding = tuple(k // 2 for k in kernel) if same else 0
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3)

    def forward(self, x):
        return self.bn(self.conv(x)).relu()


class Inception(nn.Module):
    """A block of parallel branches, concatenated in order. A branch is a list of steps; a step is "max" or "avg"
    pooling or (channels, kernel[, stride, same]). `paths` name the steps' modules, or None where pooling has none."""

    def __init__(self, inputs, branches, width):
        super().__init__()
        self.order = []
        self.outputs = 0
        for name, steps in branches:
            channels = inputs
            modules = []
            for step in steps:
                if step == "max":
                    modules.append(nn.MaxPool2d(3, 2))
                elif step == "avg":
                    modules.append(nn.AvgPool2d(3, 1, 1, count_include_pad=False))
                else:
                    modules.append(Unit(channels, scaled(step[0], width), *step[1:]))
                    channels = scaled(step[0], width)
            setattr(self, name, nn.Sequential(*modules) if len(modules) > 1 else modules[0])
            self.order.append(name)
            self.outputs += channels

    def forward(self, x):
        return torch.cat([getattr(self, name)(x) for name in self.order], 1)


class InceptionC(nn.Module):
    """The last blocks of Inception-v4: two of its branches fork."""

    def __init__(self, inputs, width):
        super().__init__()
        n = {c: scaled(c, width) for c in (256, 384, 448, 512)}
        self.branch0 = Unit(inputs, n[256], (1, 1))
        self.branch1_0 = Unit(inputs, n[384], (1, 1))
        self.branch1_1a = Unit(n[384], n[256], (1, 3))
        self.branch1_1b = Unit(n[384], n[256], (3, 1))
        self.branch2_0 = Unit(inputs, n[384], (1, 1))
        self.branch2_1 = Unit(n[384], n[448], (3, 1))
        self.branch2_2 = Unit(n[448], n[512], (1, 3))
        self.branch2_3a = Unit(n[512], n[256], (1, 3))
        self.branch2_3b = Unit(n[512], n[256], (3, 1))
        self.branch3 = nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False), Unit(inputs, n[256], (1, 1)))

    def forward(self, x):
        b = self.branch1_0(x)
        c = self.branch2_2(self.branch2_1(self.branch2_0(x)))
        return torch.cat([self.branch0(x), self.branch1_1a(b), self.branch1_1b(b), self.branch2_3a(c),
                          self.branch2_3b(c), self.branch3(x)], 1)


class InceptionV4(nn.Module):
    def __init__(self, channels, classes, width):
        super().__init__()
        k1, k3, row, column = (1, 1), (3, 3), (1, 7), (7, 1)
        blocks = [Unit(channels, scaled(32, width), k3, 2, False),
                  Unit(scaled(32, width), scaled(32, width), k3, 1, False),
                  Unit(scaled(32, width), scaled(64, width), k3)]
        outputs = scaled(64, width)

        def add(branches):
            nonlocal outputs
            blocks.append(Inception(outputs, branches, width))
            outputs = blocks[-1].outputs

        add([("maxpool", ["max"]), ("conv", [(96, k3, 2, False)])])
        add([("branch0", [(64, k1), (96, k3, 1, False)]),
             ("branch1", [(64, k1), (64, row), (64, column), (96, k3, 1, False)])])
        add([("conv", [(192, k3, 2, False)]), ("maxpool", ["max"])])
        for _ in range(4):
            add([("branch0", [(96, k1)]), ("branch1", [(64, k1), (96, k3)]),
                 ("branch2", [(64, k1), (96, k3), (96, k3)]), ("branch3", ["avg", (96, k1)])])
        add([("branch0", [(384, k3, 2, False)]), ("branch1", [(192, k1), (224, k3), (256, k3, 2, False)]),
             ("branch2", ["max"])])
        for _ in range(7):
            add([("branch0", [(384, k1)]), ("branch1", [(192, k1), (224, row), (256, column)]),
                 ("branch2", [(192, k1), (192, column), (224, row), (224, column), (256, row)]),
                 ("branch3", ["avg", (128, k1)])])
        add([("branch0", [(192, k1), (192, k3, 2, False)]),
             ("branch1", [(256, k1), (256, row), (320, column), (320, k3, 2, False)]), ("branch2", ["max"])])
        for _ in range(3):
            blocks.append(InceptionC(outputs, width))
            outputs = 6 * scaled(256, width)
        self.features = nn.Sequential(*blocks)
        self.last_linear = nn.Linear(outputs, classes)

    def forward(self, x):
        return self.last_linear(self.features(x).mean((2, 3)))


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs, volumetric):
        super().__init__()
        conv, norm = (nn.Conv3d, nn.BatchNorm3d) if volumetric else (nn.Conv2d, nn.BatchNorm2d)
        self.conv1 = conv(inputs, outputs, 3, padding=1, bias=False)
        self.norm1 = norm(outputs)
        self.conv2 = conv(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = norm(outputs)

    def forward(self, x):
        return self.norm2(self.conv2(self.norm1(self.conv1(x)).relu())).relu()


class UNet(nn.Module):
    def __init__(self, channels, classes, width, base, depth, volumetric):
        super().__init__()
        self.depth = depth
        n = [scaled(base << level, width) for level in range(depth + 1)]
        for level in range(depth):
            setattr(self, f"encoder{level + 1}", DoubleConv(n[level - 1] if level else channels, n[level], volumetric))
        self.pool = (nn.MaxPool3d if volumetric else nn.MaxPool2d)(2)
        self.bottleneck = DoubleConv(n[depth - 1], n[depth], volumetric)
        up = nn.ConvTranspose3d if volumetric else nn.ConvTranspose2d
        for level in reversed(range(depth)):
            setattr(self, f"up{level + 1}", up(n[level + 1], n[level], 2, 2))
            setattr(self, f"decoder{level + 1}", DoubleConv(2 * n[level], n[level], volumetric))
        self.head = (nn.Conv3d if volumetric else nn.Conv2d)(n[0], classes, 1)

    def forward(self, x):
        skips = []
        for level in range(1, self.depth + 1):
            skips.append(getattr(self, f"encoder{level}")(x))
            x = self.pool(skips[-1])
        x = self.bottleneck(x)
        for level in range(self.depth, 0, -1):
            x = torch.cat([skips[level - 1], getattr(self, f"up{level}")(x)], 1)
            x = getattr(self, f"decoder{level}")(x)
        return self.head(x)


def make_network(name, channels, image_size, classes, width):
    """An instance of Penstock's model `name`."""
    if name == "lenet":
        return LeNet(channels, image_size, classes, width)
    if name == "resnet20":
        return SmallResNet(channels, classes, width, 3)
    if name == "inception-v4":
        return InceptionV4(channels, classes, width)
    if name == "unet":
        return UNet(channels, classes, width, 64, 4, False)
    if name == "unet3d":
        return UNet(channels, classes, width, 32, 3, True)
    if name == "vit_b_16":
        heads = 12
        return torchvision.models.VisionTransformer(image_size, 16, 12, heads, heads * scaled(64, width),
                                                    scaled(3072, width), num_classes=classes)
    if name.startswith("resnet-"):
        third = (int(name.split("-")[1]) - 2) // 3 - 44
        block = torchvision.models.resnet.Bottleneck
        model = torchvision.models.ResNet(block, [6, 32, third, 6])
    else:
        model = getattr(torchvision.models, name)()
    assert channels == 3
    return shrink(model, width, classes)
