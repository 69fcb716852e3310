"""The built-in losses, by PyTorch's rules."""

from . import _core

_ELEMENTS = {"mse": "mse", "l1": "l1", "smooth_l1": "smooth_l1", "huber": "huber",
             "binary_cross_entropy_with_logits": "bce_with_logits", "bce_with_logits": "bce_with_logits",
             "kl_div": "kl", "kl": "kl"}


def add_loss(importer, loss, outputs, targets, names):
    """Ends the network: with a built-in loss of the first output, or with the scalar that the module returns."""
    net = importer.net
    if loss is None:
        elements = 1
        for extent in importer.shape(outputs[0]):
            elements *= extent
        if elements != 1:
            raise _core.UserError(f"the module returns a tensor of shape {list(importer.shape(outputs[0]))}, not a loss; give "
                                  "loss=, such as loss='cross_entropy'")
        net.loss(net.reshape(outputs[0], [1]))
        outputs, names = outputs[1:], names[1:]
    elif isinstance(loss, str) and loss == "cross_entropy" or isinstance(loss, dict) and loss.get("name") == "cross_entropy":
        options = dict(loss) if isinstance(loss, dict) else {}
        options.pop("name", None)
        _cross_entropy(importer, outputs[0], targets[0], **options)
    elif loss in _ELEMENTS:
        prediction, target = outputs[0], targets[0]
        if importer.shape(prediction) != importer.shape(target):
            raise _core.UserError(f"the loss '{loss}' takes two arrays of one shape; the module gives "
                                  f"{list(importer.shape(prediction))}, the example has {list(importer.shape(target))}")
        net.loss(net.element_loss(_ELEMENTS[loss], prediction, target))
    else:
        raise _core.UserError(f"the loss {loss!r} is not known; there are cross_entropy, {', '.join(sorted(_ELEMENTS))}, or "
                              "a module that returns its loss")
    for name, value in zip(names, outputs):
        net.output(name, value, evaluation_only=True)


def _cross_entropy(importer, logits, labels, label_smoothing=0.0, ignore_index=-100, weight=None):
    net, shape = importer.net, importer.shape(logits)
    if importer.shape(labels) != shape[:1] + shape[2:]:
        raise _core.UserError(f"cross_entropy takes labels of shape {list(shape[:1] + shape[2:])} for what the module gives, "
                              f"{list(shape)}; the example has {list(importer.shape(labels))}")
    if net.dtype(labels) != "int32":
        raise _core.UserError("cross_entropy takes integers as labels")
    weights = None if weight is None else importer.value(weight)
    net.loss(net.weighted_cross_entropy(logits, labels, label_smoothing, ignore_index, weights))
