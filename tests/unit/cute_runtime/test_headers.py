"""The folders that a C++ compiler is given."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import pytest

from cute_runtime.headers import include_dirs
from toolchain.errors import ToolchainError


def test_they_have_our_headers_and_the_drivers() -> None:
    ours, cuda = include_dirs()
    assert (ours / "cute_runtime" / "cute_runtime.hpp").is_file()
    assert (cuda / "cuda.h").is_file()


@pytest.mark.parametrize("spec", [None, SimpleNamespace(submodule_search_locations=["nowhere"])])
def test_without_the_wheel_of_cuda_h_the_error_names_it(spec: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    with pytest.raises(ToolchainError, match=r"no cuda\.h.*\n.*pip install nvidia-cuda-runtime"):
        include_dirs()
