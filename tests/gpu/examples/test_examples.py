"""The examples on a GPU: they run, and what they compare agrees."""

from __future__ import annotations

import re
import runpy

import pytest

from toolchain.knobs import ROOT

FOLDER = ROOT / "examples"
NAMES = [
    pytest.param(path.stem, marks=[pytest.mark.needs("torch")] if "torch" in path.stem else [])
    for path in sorted(FOLDER.glob("[0-9][0-9]_*.py"))
]


@pytest.mark.needs("gpu", "toolchain")
@pytest.mark.parametrize("name", NAMES)
def test_an_example(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    said = capfd.readouterr().out
    assert said and "as numpy's: False" not in said
    assert [n for n in re.findall(r"largest difference from [^:]*: (\S+)", said) if not float(n) < 1e-2] == []
