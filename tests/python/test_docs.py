"""The examples of the docstrings do what they say."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["__init__", "onnx_backend", "optimizers", "plans", "session", "sizes", "training"])
def test_examples(name):
    module = importlib.import_module("penstock" if name == "__init__" else f"penstock.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
