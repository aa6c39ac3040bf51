"""An example, run in this process."""

from __future__ import annotations

import contextlib
import io
import re
import runpy

from toolchain.knobs import ROOT

FOLDER = ROOT / "examples"


def said(name: str) -> str:
    """What an example prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    return out.getvalue()


def differences(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"largest difference from [^:]*: (\S+)", text)]


def answers(text: str) -> list[bool]:
    """Of "as numpy's: True"."""
    return [word == "True" for word in re.findall(r"as numpy's: (True|False)", text)]
