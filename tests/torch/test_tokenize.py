import io
import subprocess
import sys

import numpy as np
import penstock as ps
import pytest
from penstock import tokenize

tokenizers = pytest.importorskip("tokenizers")

TEXT = "the cat sat on the mat\n\nthe cat ran\n  and sat\n" * 50


@pytest.fixture
def tokenizer(tmp_path):
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.train_from_iterator([TEXT], tokenizers.trainers.BpeTrainer(
        vocab_size=280, special_tokens=["<|end|>"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    made.save(str(tmp_path / "tokenizer.json"))
    return made


def test_tokens_decode_to_the_text_and_train(tokenizer, tmp_path):
    (tmp_path / "one.txt").write_text(TEXT)
    (tmp_path / "two.txt").write_text("the mat")
    out = tmp_path / "tokens.bin"
    command = [sys.executable, "-m", "penstock.tokenize", str(tmp_path), str(tmp_path / "one.txt"), str(tmp_path / "two.txt"),
               "--out", str(out), "--end", "<|end|>"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tokens = np.fromfile(out, "<u2")
    assert f"{len(tokens)} tokens" in done.stdout
    parts = np.split(tokens, np.flatnonzero(tokens == tokenizer.token_to_id("<|end|>")) + 1)
    assert [tokenizer.decode(part[:-1].tolist()) for part in parts[:2]] == [TEXT, "the mat"]
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 16, '
                                          f'"vocab_size": {tokenizer.get_vocab_size()}}}')
    result = ps.train(str(tmp_path / "config.json"), f"tokens:{out}", batch=2, steps=2, process_memory="1GiB", progress=False)
    assert len(result.loss) == 2


def test_pieces_give_the_tokens_of_the_whole(tokenizer):
    whole = tokenizer.encode(TEXT).ids
    for size in (30, 97, 1000):
        parts = list(tokenize.pieces(io.StringIO(TEXT), size))
        assert "".join(parts) == TEXT and len(parts) > 1
        assert [token for part in parts for token in tokenizer.encode(part).ids] == whole


def test_bad_input_is_told(tokenizer, tmp_path):
    with pytest.raises(ps.UserError, match="there is no tokenizer"):
        tokenize.load(tmp_path / "missing.json")
    (tmp_path / "text.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ps.UserError, match="is no UTF-8 text"):
        tokenize.write_tokens(tokenizer, [tmp_path / "text.txt"], tmp_path / "out")
    with pytest.raises(ps.UserError, match="cannot be read"):
        tokenize.write_tokens(tokenizer, [tmp_path / "missing.txt"], tmp_path / "out")
    with pytest.raises(ps.UserError, match="has no token '<x>'"):
        tokenize.write_tokens(tokenizer, [], tmp_path / "out", end="<x>")
