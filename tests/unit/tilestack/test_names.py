"""A program's modules with names like ours: the program gets its own."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from tilestack.names import give_way
from toolchain.errors import UsageError
from toolchain.knobs import ROOT


@mock.patch.dict(sys.modules)
def test_ours_gives_way(tmp_path: Path) -> None:
    for name in ("tune", "tune.toml", "conformance"):
        importlib.import_module(name)
    (tmp_path / "tune").mkdir()
    (tmp_path / "json.py").touch()  # a name that is not ours
    give_way(tmp_path)
    assert "tune" in sys.modules, "a folder without __init__.py is no module that would be found first"
    (tmp_path / "tune" / "__init__.py").touch()
    give_way(tmp_path)
    assert not {"tune", "tune.toml"} & sys.modules.keys()
    assert {"conformance", "json"} <= sys.modules.keys()


def test_a_name_that_is_always_needed(tmp_path: Path) -> None:
    (tmp_path / "toolchain.py").touch()
    with pytest.raises(UsageError, match=r"toolchain\.py has the name of a package of tilestack"):
        give_way(tmp_path)


PROGRAM = """import os, sys
others = [place for place in sys.path if not os.path.isdir(os.path.join(place, "tilestack"))]
sys.path[:] = [{program!r}, *others, {root!r}]  # the checkout last, as an editable install has it
import tilestack
import gpt
import benchmarks
print(gpt.__file__, benchmarks.__file__)
"""


def test_a_program_that_imports_us_keeps_its_modules(tmp_path: Path) -> None:
    """And what comes after an installed package of the same name, here xdsl's `benchmarks`, is ours."""
    (tmp_path / "gpt.py").touch()
    program = PROGRAM.format(program=str(tmp_path), root=str(ROOT))
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(tmp_path / "gpt.py"), str(ROOT / "benchmarks/__init__.py")], done.stderr
