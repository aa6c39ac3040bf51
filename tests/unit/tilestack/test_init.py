"""`import tilestack` offers its names, and loads nothing before one is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tilestack as ts


def test_an_import_loads_no_packages_and_of_ours_the_knobs_alone() -> None:
    program = (
        "import sys, tilestack; found = {'numpy', 'xdsl', 'cuda', 'rich', 'torch'} & {*sys.modules};"
        "print(*sorted({*found, *(name for name in sys.modules if name.startswith('toolchain.'))}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "toolchain.errors toolchain.knobs\n"


def test_every_name_is_there_and_documented() -> None:
    for name in ts.__all__:
        assert getattr(ts, name).__doc__, name
    assert set(ts.__all__) <= set(dir(ts))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ts.nothing
