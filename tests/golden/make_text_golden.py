"""Makes the golden files of text models with PyTorch and transformers: python3 make_text_golden.py [NAME ...]

Small instances of Hugging Face's classes, trained as make_golden.py trains the image models: five SGD and five Adam steps
on one batch in float64, parameters and tokens from a hash of (name, index). `float32_error` is how far PyTorch's own
float32 ends from float64, as a share of what training changed: the root of the sum of squares over all parameters.
"""
import json
import sys

import numpy
import torch
import transformers

from make_golden import (FOLDER, LARGEST_DIFFERENCE, MOMENTUM, STEPS, WEIGHT_DECAY, checksum, difference, fill, hashed,
                         perturb, rounded)

RATES = {"sgd": 2e-2, "adam": 1e-3}
FACTOR, TERM = 1.0, 0.1


def gpt2(layers, heads, width, vocabulary, positions):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=layers, n_head=heads, n_embd=width, vocab_size=vocabulary, n_positions=positions, resid_pdrop=0,
        embd_pdrop=0, attn_pdrop=0, attn_implementation="eager", bos_token_id=0, eos_token_id=0))


def llama(**config):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **config, attn_implementation="eager", bos_token_id=0, eos_token_id=0))


LLAMA = dict(num_hidden_layers=2, hidden_size=24, intermediate_size=40, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=53, max_position_embeddings=32, rms_norm_eps=1e-5)
STRETCHED = dict(rope_type="llama3", rope_theta=100.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=2.0,
                 original_max_position_embeddings=16)

INSTANCES = {
    # what the C++ test builds it from, what makes the peer, batch, sequence
    "gpt2-tiny": (dict(layers=2, heads=2, width=24, vocabulary=61, positions=16), gpt2, 2, 11),
    "llama-tiny": (dict(LLAMA), llama, 2, 13),
    "llama-tied": (dict(LLAMA, head_dim=8, num_key_value_heads=1, tie_word_embeddings=True, rope_parameters=STRETCHED),
                   llama, 1, 19),
}


def train(instance, kind, dtype, seed=None):
    config, make_model, batch, sequence = instance
    model = make_model(**config)
    fill(model, FACTOR, TERM)
    model = model.to(dtype).train()
    start = {k: v.detach().double().clone() for k, v in model.named_parameters()}
    if seed is not None:
        perturb(model, seed)
    vocabulary = model.config.vocab_size

    def tokens(name):
        values = (hashed(name, batch * sequence) % vocabulary).astype(numpy.int64)
        return torch.from_numpy(values).reshape(batch, sequence)

    if kind == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), RATES[kind], MOMENTUM, weight_decay=WEIGHT_DECAY)
    else:
        optimizer = torch.optim.Adam(model.parameters(), RATES[kind], weight_decay=WEIGHT_DECAY)
    losses = []
    for step in range(STEPS + 1):
        logits = model(tokens("tokens")).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens("labels").flatten())
        losses.append(loss.item())
        if step == STEPS:  # the trained network in evaluation
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    end = {k: v.detach().double() for k, v in model.named_parameters()}
    return losses, {k: checksum(v.flatten()) for k, v in end.items()}, start, end


def compared(weights):
    """What the update's error is measured on: vectors, and a matrix of the first layer."""
    return {k: v for k, v in weights.items() if v.dim() == 1 or ".0." in k and "attn." in k and v.numel() <= 600}


def distance(a, b):
    return sum(((v - b[k]) ** 2).sum().item() for k, v in compared(a).items()) ** 0.5


def make(name):
    instance = INSTANCES[name]
    golden = {"config": instance[0], "batch": instance[2], "sequence": instance[3], "factor": FACTOR, "term": TERM,
              "rates": RATES, "losses": {}, "float32_error": {}, "update_size": {}, "weights": {}}
    states = {}
    for kind in RATES:
        exact = train(instance, kind, torch.float64)
        single = train(instance, kind, torch.float32)
        losses, sums = (max(values) for values in zip(*(difference(exact, other) for other in (
            single, train(instance, kind, torch.float64, 0)))))
        size = distance(exact[2], exact[3])
        error = distance(single[3], exact[3]) / size
        print(f"{name:12} {kind:5} others differ by {losses:.1e} in losses, {sums:.1e} in state, {error:.1e} of the update;",
              " ".join(f"{x:.4f}" for x in exact[0]), flush=True)
        if max(losses, sums) > LARGEST_DIFFERENCE:
            sys.exit(f"{name}: too sensitive")
        golden["losses"][kind] = rounded(exact[0])
        golden["float32_error"][kind] = float(f"{error:.3g}")
        golden["update_size"][kind] = float(f"{size:.7g}")
        golden["weights"][kind] = {k: [float(f"{x:.9g}") for x in v.flatten().tolist()]
                                   for k, v in compared(exact[3]).items()}
        for key, value in exact[1].items():
            states.setdefault(key, []).extend(rounded(value))
    lines = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in golden.items()]
    states = [f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in states.items()]
    lines.append('  "state": {\n' + ",\n".join(states) + "\n  }")
    (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for model_name in sys.argv[1:] or INSTANCES:
        make(model_name)
