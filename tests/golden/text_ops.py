"""The ops of transformers as PyTorch computes them, for make_op_golden.py: attributes, inputs, output shapes."""
import math

import torch
import torch.nn.functional as F

PACKED, ROWS, HEADS = range(3)


def attention(a, *x):
    heads, kv_heads = a["heads"], a["kv_heads"]
    if a["layout"] == PACKED:
        width = x[0].shape[2] // (heads + 2 * kv_heads)
        q, k, v = x[0].split([heads * width, kv_heads * width, kv_heads * width], dim=2)
        mask = None
    else:
        (q, k, v), mask = x[:3], x[3] if len(x) > 3 else None
    if a["layout"] != HEADS:
        q, k, v = (t.unflatten(2, (n, -1)).transpose(1, 2) for t, n in ((q, heads), (k, kv_heads), (v, kv_heads)))
    k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
    scores = a["scale"] * q @ k.mT
    if mask is not None:
        hides = bool(((mask == 0) | (mask == 1)).all())
        scores = scores.masked_fill(mask == 0, -math.inf) if hides else scores + mask
    if a["causal"]:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, -math.inf)
    y = scores.softmax(-1) @ v
    if a["layout"] != HEADS:
        y = y.transpose(1, 2).flatten(2)
    return y, scores.logsumexp(-1)


def layer_norm(a, x, gamma, *rest):
    rest = list(rest)
    beta = None if a["rms"] else rest.pop(0)
    x = x + rest[0] if a["add"] else x
    if a["rms"]:
        square = (x * x).mean(-1)
        outputs = (F.rms_norm(x, gamma.shape, gamma, a["epsilon"]), square.flatten())
    else:
        outputs = (F.layer_norm(x, gamma.shape, gamma, beta, a["epsilon"]), x.mean(-1).flatten(),
                   x.var(-1, unbiased=False).flatten())
    return outputs + (x,) if a["add"] else outputs


def linear(a, x, w, b=None):
    y = F.linear(x, w.mT if a["turned"] else w, b)
    return torch.relu(y) if a["relu"] else y


def linear_some_rows(a, x, dy, rows):
    dw = x.flatten(0, -2).mT @ dy.flatten(0, -2)
    return (dw if a["turned"] else dw.mT)[a["begin"]:a["begin"] + rows]


def embedding(tokens, w, p=None):
    tokens = tokens.long()
    y = F.embedding(tokens.clamp(min=0), w) * (tokens >= 0).unsqueeze(-1)
    return y if p is None else y + p[:tokens.shape[-1]]


def embedding_some_rows(a, tokens, dy, dw, rows):
    whole = torch.zeros(a["begin"] + rows + 1, dy.shape[-1])
    whole.index_add_(0, tokens.long().flatten(), dy.flatten(0, -2))
    return dw + whole[a["begin"]:a["begin"] + rows]


def frequencies(a):
    made = a["base"] ** (-torch.arange(0, a["rotated"], 2) / a["rotated"])
    if a["low_turns"] == a["high_turns"]:
        return made / a["factor"]
    turns = a["original_length"] * made / (2 * math.pi)
    share = ((turns - a["low_turns"]) / (a["high_turns"] - a["low_turns"])).clamp(0, 1)
    return (1 - share) * made / a["factor"] + share * made


def rotary(a, x):
    heads = x.unflatten(-1, (-1, a["head_width"]))
    angle = torch.arange(x.shape[-2]).unsqueeze(1) * frequencies(a)
    cos, sin = angle.cos().unsqueeze(1), angle.sin().unsqueeze(1)
    turned, rest = heads[..., :a["rotated"]], heads[..., a["rotated"]:]
    if a["interleaved"]:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned.chunk(2, -1)
    pair = [first * cos - second * sin, second * cos + first * sin]
    turned = torch.stack(pair, -1).flatten(-2) if a["interleaved"] else torch.cat(pair, -1)
    return torch.cat([turned, rest], -1).flatten(-2)


def gate(a, x, b=1):
    functions = {"silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda t: F.gelu(t, approximate="tanh")}
    return functions[a["function"]](x) * b


def output_loss(a, x, w, labels):
    logits = F.linear(x, w).flatten(0, -2)
    loss = F.cross_entropy(logits, labels.long().flatten(), ignore_index=-1, label_smoothing=a["smoothing"])
    return loss.reshape(1), logits.logsumexp(-1)


def output_loss_some_rows(a, x, w, labels, logsum, dx, rows):
    labels = labels.long().flatten()
    flat = x.flatten(0, -2)
    share = (F.linear(flat, w) - logsum.unsqueeze(1)).exp() - F.one_hot(labels.clamp(min=0), w.shape[0])
    share = share * (labels >= 0).unsqueeze(1) / (labels >= 0).sum()
    part = slice(a["begin"], a["begin"] + rows)
    return dx + (share[:, part] @ w[part]).reshape(x.shape), share[:, part].mT @ flat


def clip_scale(a, *sums):
    norm = (a["weight"] * sum(sums)).sqrt()
    return (a["norm"] / (norm + 1e-6)).clamp(max=1), norm


OPS = {
    "attention": lambda a, x, s: attention(a, *x),
    "layer_norm": lambda a, x, s: layer_norm(a, *x),
    "linear": lambda a, x, s: linear(a, *x),
    "linear_backward_weights": lambda a, x, s: linear_some_rows(a, *x, s[0][0]),
    "embedding": lambda a, x, s: embedding(*x),
    "embedding_backward": lambda a, x, s: embedding_some_rows(a, *x, s[0][0]),
    "rotary": lambda a, x, s: rotary(a, *x),
    "gate": lambda a, x, s: gate(a, *x),
    "linear_cross_entropy": lambda a, x, s: output_loss(a, *x),
    "linear_cross_entropy_backward": lambda a, x, s: output_loss_some_rows(a, *x, s[1][0]),
    "sum_squares": lambda a, x, s: sum((t * t).sum() for t in x).reshape(1),
    "clip_scale": lambda a, x, s: clip_scale(a, *x),
}
