"""Small configurations of networks of `transformers`, with random weights."""

import pytest
import torch
import transformers
from steps import check_bits, check_error


class Logits(torch.nn.Module):
    def __init__(self, network, tokens):
        super().__init__()
        self.network, self.tokens = network, tokens

    def forward(self, x):
        given = self.network(x).logits
        return given.flatten(0, 1) if self.tokens else given


class Pooled(torch.nn.Module):
    """An encoder and a classifier of the mean over the sequence."""

    def __init__(self, encoder, width):
        super().__init__()
        self.encoder, self.head = encoder, torch.nn.Linear(width, 5)

    def forward(self, x):
        return self.head(self.encoder(x).last_hidden_state.mean(1))


def tokens(*shape):
    return lambda n: torch.randint(1, 97, (n * shape[0], *shape[1:]))


def classes(n):
    return torch.randint(0, 5, (4 * n,))


def gpt2(layers):
    config = transformers.GPT2Config(vocab_size=97, n_positions=32, n_embd=48, n_layer=layers, n_head=4, resid_pdrop=0.0,
                                     embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    return Logits(transformers.GPT2LMHeadModel(config), True), tokens(2, 16), tokens(32)


def bert(layers):
    config = transformers.BertConfig(vocab_size=97, hidden_size=48, num_hidden_layers=layers, num_attention_heads=4,
                                     intermediate_size=96, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                                     max_position_embeddings=32, num_labels=5)
    return Logits(transformers.BertForSequenceClassification(config), False), tokens(4, 16), classes


def vit(layers):
    config = transformers.ViTConfig(hidden_size=48, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=96,
                                    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, image_size=32, patch_size=8,
                                    num_labels=5)
    return Logits(transformers.ViTForImageClassification(config), False), lambda n: torch.randn(4 * n, 3, 32, 32), classes


def llama(layers):
    config = transformers.LlamaConfig(vocab_size=97, hidden_size=48, intermediate_size=96, num_hidden_layers=layers,
                                      num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32, use_cache=False)
    return Logits(transformers.LlamaForCausalLM(config), True), tokens(2, 16), tokens(32)


def t5(layers):
    config = transformers.T5Config(vocab_size=97, d_model=48, d_kv=12, d_ff=96, num_layers=layers, num_heads=4, dropout_rate=0.0,
                                   use_cache=False)
    return Pooled(transformers.T5EncoderModel(config), 48), tokens(4, 16), classes


MANY = 192  # times the batch of the comparison: activations are then most of what is kept, and a third is enough
NETWORKS = [gpt2, bert, vit, llama, t5]


@pytest.mark.parametrize("make", NETWORKS, ids=lambda make: make.__name__)
def test_one_step(make):
    torch.manual_seed(3)
    module, x, labels = make(layers=2)
    check_error(make.__name__, module, lambda: (x(1), labels(1)))


@pytest.mark.parametrize("make", NETWORKS, ids=lambda make: make.__name__)
def test_a_third_of_the_memory(make):
    torch.manual_seed(3)
    module, x, labels = make(layers=10)
    check_bits(make.__name__, module, lambda: (x(MANY), labels(MANY)))
