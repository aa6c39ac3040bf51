"""Names such as `gpt` or `tune` that a program's own modules share with packages of ours."""

from __future__ import annotations

import sys
from pathlib import Path

from toolchain.errors import UsageError
from toolchain.knobs import ROOT

_NEEDED = {"tilestack", "toolchain"}  # at any time, by what runs the kernels


def give_way(folder: Path) -> None:
    """Forgets those packages of ours whose names modules in `folder` have too, so that imports find the latter.

    What has imported ours keeps it. Raises UsageError for a name that is needed while a program runs."""
    for name in sorted({module.partition(".")[0] for module in sys.modules}):
        theirs = next((file for file in (folder / f"{name}.py", folder / name / "__init__.py") if file.is_file()), None)
        ours = Path(getattr(sys.modules.get(name), "__file__", None) or "")
        if theirs is None or not ours.is_relative_to(ROOT) or ours == theirs.resolve():
            continue
        if name in _NEEDED:
            raise UsageError(f"{theirs} has the name of a package of tilestack", hint="give it another name")
        for module in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
            del sys.modules[module]
