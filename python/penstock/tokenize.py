"""Turns text into tokens for `penstock train --data tokens:FILE`, with a tokenizer.json of the Hugging Face hub.

    python -m penstock.tokenize tokenizer.json book.txt more.txt --out train.bin

Needs the package `tokenizers` of PyPI.
"""

import argparse
import os
import sys

import numpy as np

from ._core import UserError

PIECE = 16 << 20  # characters encoded at a time; a file of more is cut at ends of lines


def load(path):
    """The tokenizer of a file tokenizer.json, or of a folder that has one."""
    try:
        import tokenizers
    except ImportError:
        raise UserError("turning text into tokens needs the package tokenizers; install it with pip") from None
    path = os.fspath(path)
    if os.path.isdir(path):
        path = os.path.join(path, "tokenizer.json")
    if not os.path.isfile(path):
        raise UserError(f"there is no tokenizer '{path}'; give a tokenizer.json or a folder that has one")
    try:
        return tokenizers.Tokenizer.from_file(path)
    except Exception as error:  # the package raises plain Exception
        raise UserError(f"'{path}' is no tokenizer: {error}") from None


def pieces(file, size=PIECE):
    """A text in parts of about `size` characters that end with a line which text, not space, follows: there tokenizers
    that take white space apart from words cut anyway."""
    rest = ""
    while True:
        read = file.read(size)
        rest += read
        if len(read) < size:
            break
        cut = rest.rfind("\n", 0, len(rest) - 1)
        while cut >= 0 and rest[cut + 1].isspace():
            cut = rest.rfind("\n", 0, cut)
        if cut >= 0:
            yield rest[:cut + 1]
            rest = rest[cut + 1:]
    if rest:
        yield rest


def write_tokens(tokenizer, texts, out, *, end=None):
    """Encodes text files one behind the other, each with the token `end` behind it, and writes them to `out`: uint16, or
    uint32 where the vocabulary has more than 65,536 tokens. Returns how many tokens were written, and the vocabulary."""
    tokenizer = load(tokenizer) if isinstance(tokenizer, (str, os.PathLike)) else tokenizer
    vocabulary = tokenizer.get_vocab_size(with_added_tokens=True)
    dtype = np.dtype("<u2" if vocabulary <= 1 << 16 else "<u4")
    last = None
    if end is not None:
        last = tokenizer.token_to_id(end)
        if last is None:
            raise UserError(f"the tokenizer has no token '{end}'")
    count = 0
    with open(out, "wb") as to:
        for path in texts:
            try:
                with open(path, encoding="utf-8", newline="") as file:
                    for piece in pieces(file):
                        ids = tokenizer.encode(piece, add_special_tokens=False).ids
                        count += len(ids)
                        np.asarray(ids, dtype).tofile(to)
            except UnicodeDecodeError as error:
                raise UserError(f"'{path}' is no UTF-8 text: byte {error.start} of a part") from None
            except OSError as error:
                raise UserError(f"'{path}' cannot be read: {error.strerror}") from None
            if last is not None:
                np.asarray([last], dtype).tofile(to)
                count += 1
    return count, vocabulary


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m penstock.tokenize", description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", help="tokenizer.json, or a folder of the hub that has one")
    parser.add_argument("texts", nargs="+", help="text files, UTF-8")
    parser.add_argument("--out", required=True, help="the file of tokens")
    parser.add_argument("--end", help="a token that stands behind each file, such as <|endoftext|>")
    given = parser.parse_args(arguments)
    try:
        count, vocabulary = write_tokens(given.tokenizer, given.texts, given.out, end=given.end)
    except UserError as error:
        print(f"penstock.tokenize: {error}", file=sys.stderr)
        return 2
    print(f"{count} tokens of a vocabulary of {vocabulary} written to {given.out}: train with --data tokens:{given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
