"""Which model continues a text: kernels are compiled for what is asked, once."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from gpt.parameters import weights
from gpt.text import Request
from gpt.tokens.tokenizer import ByteTokenizer
from tilestack.api.bundles.kernels import Kernels
from toolchain.errors import BundleError
from toolchain.runtime import open_executor


def test_a_model_is_kept_as_long_as_it_has_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config, tensors, _ = weights.load(weights.SHIPPED)

    def request(*prompts: str) -> Request:
        return Request.of(config, ByteTokenizer(), prompts, max_new_tokens=4)

    with open_executor("cpu") as executor, ExitStack() as opened:
        kernels = Kernels("mlir", "bf16", executor, config, tensors, None, opened)
        one = kernels.model(request("a"))
        assert kernels.model(request("b")) is one
        more = kernels.model(request("abcde"))  # takes other kernels
        assert more is not one
        assert kernels.model(request("a")) is more
        with pytest.raises(BundleError, match="no bundle in"):
            Kernels("mlir", "bf16", executor, config, tensors, tmp_path, opened).model(request("a"))
