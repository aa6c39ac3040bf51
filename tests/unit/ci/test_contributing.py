"""Files for contributors only name things that exist: hooks, the development container, forms, CONTRIBUTING.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolchain.knobs import ROOT
from toolchain.native.images import image

BIN = Path(sys.executable).parent
SESSIONS = re.findall(r"@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text())
TYPED = ("conformance", "gpt", "tilestack", "toolchain", "tune")
PAGES = ("CONTRIBUTING.md", "docs/add-a-target.md", "docs/add-a-model.md")


def hooks() -> list[dict[str, Any]]:
    table = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in table["repos"]] == ["local"]
    return table["repos"][0]["hooks"]


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: hook["id"])
def test_a_hook_calls_a_tool_of_the_toolchain(hook: dict[str, Any]) -> None:
    assert hook["language"] == "system"
    folder, _, name = hook["entry"].split()[0].rpartition("/")
    assert folder == ".toolchain/venv/bin"
    assert (BIN / name).is_file()


def test_the_hooks_are_valid() -> None:
    command = [BIN / "pre-commit", "validate-config", ROOT / ".pre-commit-config.yaml"]
    subprocess.run(command, check=True, capture_output=True)


def test_the_development_container_is_our_own_image() -> None:
    lines = (ROOT / ".devcontainer/devcontainer.json").read_text().splitlines()
    table = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    ours = image("compilers")
    assert table["image"] == ours.tag
    assert f"nox -s base_image -- {ours.name}" in table["initializeCommand"]
    assert {"git", "python3", "python3-venv"} <= set(ours.packages)


@pytest.mark.parametrize("package", TYPED)
def test_a_typed_package_says_so(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_name_what_is_there(page: str) -> None:
    text = (ROOT / page).read_text()
    folder = (ROOT / page).parent
    links = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert links
    assert [target for target in links if not (folder / target).exists()] == []
    assert set(re.findall(r"nox -s (\w+)", text)) <= set(SESSIONS)
