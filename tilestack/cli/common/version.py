"""Which tilestack this is."""

from __future__ import annotations

import tomllib
from importlib import metadata

from toolchain.errors import ToolchainError
from toolchain.knobs import ROOT

NAME = "tilestack"


def version() -> str:
    """pyproject.toml's where this is a checkout, else the installed package's. Raises ToolchainError without either.

    The checkout comes first: an editable install keeps the version of the day on which it was made.
    """
    path = ROOT / "pyproject.toml"
    project = tomllib.loads(path.read_text())["project"] if path.is_file() else {}
    if project.get("name") == NAME:
        return str(project["version"])
    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError as error:
        hint = "run it in a checkout, or install the wheel"
        raise ToolchainError(f"no package {NAME} is installed, and {path} does not belong to it", hint=hint) from error
