"""Mistakes in a kernel file of source `py`: each is an error with its place, no traceback of ours."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kernels_py
from toolchain.contract.entry import EntrySpec
from toolchain.errors import SourceError

pytestmark = pytest.mark.needs("toolchain")
GELU = next(spec for spec in kernels_py.SOURCE.entries() if (spec.op, spec.dtype) == ("gelu", "f32"))
SOFTMAX = next(spec for spec in kernels_py.SOURCE.entries() if (spec.op, spec.dtype) == ("softmax", "f32"))
Edited = Callable[[str, str, str], Callable[[EntrySpec], bytes]]


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Edited]:
    """A copy of the source in which a text of one file is replaced; exports an entry of it."""
    package = "kernels_edited"

    def edit(file: str, old: str, new: str) -> Callable[[EntrySpec], bytes]:
        shutil.copytree(kernels_py.HERE, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
        path = tmp_path / package / "rows" / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        return importlib.import_module(package).SOURCE.bytecode

    monkeypatch.syspath_prepend(tmp_path)
    yield edit
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "gelu.py",
            "value = load",
            "value load",
            r"^kernels_edited/rows/gelu\.py:14:\d+: error: invalid syntax\n +value load",
        ),
        ("gelu.py", "def gelu(", "def gleu(", r"no file here defines a kernel gelu\n  next: "),
        ("gelu.py", "import Int, gelu_of", "import Int, glue_of", r"gelu\.py:7: error: ImportError: .*'glue_of_value'"),
        (
            "gelu.py",
            "import cuda.tile as ct",
            "import cuda.tile as ct\n1 / 0",
            r"gelu\.py:6: error: ZeroDivisionError",
        ),
        ("gelu.py", "gelu_of_value(value", "glue_of_value(value", r"^kernels_edited/rows/gelu\.py: .*glue_of_value"),
        ("gelu.py", "BN: Int", "BM: Int", r"gelu takes the constants R, BM; \w+ has R, BN\n  next: name the same"),
        (
            "gelu.py",
            "import cuda.tile as ct",
            "import kernels_edited.gone",
            r"gelu\.py:5: error: ModuleNotFoundError",
        ),
    ],
    ids=[
        "syntax",
        "renamed kernel",
        "renamed import",
        "import fails",
        "renamed function",
        "renamed constant",
        "missing file",
    ],
)
def test_a_mistake_names_its_place(file: str, old: str, new: str, said: str, edited: Edited) -> None:
    with pytest.raises(SourceError, match=said):
        edited(file, old, new)(GELU)


def test_a_broken_file_does_not_stop_the_kernels_of_the_others(edited: Edited) -> None:
    assert edited("gelu.py", "value = load", "value load")(SOFTMAX) == kernels_py.SOURCE.bytecode(SOFTMAX)


def test_constants_are_passed_by_name(edited: Edited) -> None:
    assert edited("gelu.py", "R: Int, BN: Int", "BN: Int, R: Int")(GELU) == kernels_py.SOURCE.bytecode(GELU)
