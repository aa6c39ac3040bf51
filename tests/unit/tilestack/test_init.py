"""`import tilestack` offers its names, and loads nothing before one is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tilestack as ts


def test_an_import_loads_neither_packages_nor_ours() -> None:
    program = (
        "import sys, tilestack; print(sorted({'numpy', 'xdsl', 'cuda', 'rich', 'torch', 'toolchain'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_name_is_there_and_documented() -> None:
    for name in ts.__all__:
        assert getattr(ts, name).__doc__, name
    assert set(ts.__all__) <= set(dir(ts))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ts.nothing
