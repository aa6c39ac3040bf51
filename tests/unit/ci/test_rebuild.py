"""A machine built again from a record, with a commit, a toolchain and an engine that are not the real ones."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ci import rebuild
from ci.rebuild import Record
from conformance.results.origin import Origin
from toolchain.errors import ToolFailed, UsageError
from toolchain.knobs import ROOT

TOOLS = {"tileiras": {"version": "13.5.37", "sha256": "6ff86caf8cf779"}}
IMAGE = "sha256:1234"
PUBLISHED = ROOT / "benchmarks/results/nvidia-h200.json"
HOST = {"python": "3.13.5", "machine": "Linux", "image": IMAGE, "packages": {"numpy": "2.5.2", "torch": "2.11.0"}}
CLOCKS = {"sm_clock_mhz": "1980"}
DEVICE = {"gpu": "NVIDIA H200", "driver": "580.1", "target": "sm_90", "before": CLOCKS, "after": CLOCKS}

# The commit's Python: compiles a bundle that is ready, and has made the image already.
PYTHON = """#!/bin/sh
echo "$@" >> {folder}/ran
[ "$3" = compile ] || exit 0
while [ "$1" != --output ]; do shift; done
cp -r {folder}/ready "$2"
"""
NOX = """#!/bin/sh
mkdir -p .toolchain/venv/bin && cp {folder}/python .toolchain/venv/bin/python
"""


@dataclass
class Place:
    """A repository with one commit, and what was said. `here`: the versions in the container."""

    folder: Path
    commit: str
    said: list[str] = field(default_factory=list[str])
    here: dict[str, str] = field(default_factory=lambda: {"python": "3.13.5", "numpy": "2.5.2"})
    gpus: str = "none"

    def results(self, **changed: object) -> Path:
        manifest = (self.folder / "ready/manifest.json").read_bytes()
        bundle = {"sha256": hashlib.sha256(manifest).hexdigest(), "commit": self.commit, "changes": "", "cells": {}}
        origin = Origin(self.commit, "", ["tilestack"], "2026-11-25T10:00:00Z", bundle, TOOLS, HOST, [DEVICE])
        path = self.folder / "results.json"
        path.write_text(json.dumps({"format": 2, "origin": replace(origin, **changed).to_json()}))  # pyright: ignore[reportArgumentType]
        return path

    def rebuild(self, path: Path, *ops: str) -> list[str]:
        return rebuild.rebuild(path, self.folder / "out", ops, str(self.folder / "nox"), self.said.append)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    repository = tmp_path / "repository"
    (repository / "containers").mkdir(parents=True)
    (repository / "containers/images.toml").write_text(f'[images.runtime]\ndigest = "{IMAGE}"\n')
    (repository / "containers/runtime.lock").write_text("numpy==2.5.2 \\\n    --hash=sha256:0\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "One"]):
        subprocess.run([*git, *words], cwd=repository, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True)
    for name, text in {"python": PYTHON, "nox": NOX}.items():
        (tmp_path / name).write_text(text.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    (tmp_path / "ready").mkdir()
    (tmp_path / "ready/manifest.json").write_text(json.dumps({"tools": TOOLS}))
    made = Place(tmp_path, head.stdout.strip())

    def prepare(_: object, bundle: Path, report: Path, *, checkout: Path, exact: Sequence[str]) -> Any:
        assert bundle.is_dir() and report.parent == checkout.parent == tmp_path / "out"

        def matrix(options: Sequence[str], on_line: Callable[[str], None]) -> None:
            on_line("error: no NVIDIA driver on this machine" if made.gpus == "none" else f"12 passed {options[1]}")
            if made.gpus == "none":
                raise ToolFailed(["python"], 7, "no GPU", version="Stub 1")

        made.said.append(f"exact {' '.join(exact)}")
        return SimpleNamespace(run=run, matrix=matrix, container=SimpleNamespace(gpus=made.gpus))

    def run(*_: object) -> str:
        return json.dumps(made.here)

    def has(image: str) -> bool:
        return image == IMAGE

    def load(_: Path) -> Any:
        return SimpleNamespace(entries=())

    def find() -> Any:
        return SimpleNamespace(has=has, version="Stub 1")

    monkeypatch.setattr(rebuild, "ROOT", repository)
    monkeypatch.setattr(rebuild, "prepare", prepare)
    monkeypatch.setattr(rebuild.Engine, "find", find)
    monkeypatch.setattr(rebuild.Bundle, "load", load)
    return made


def test_all_of_it_up_to_the_launch(place: Place) -> None:
    assert place.rebuild(place.results()) == []
    said = "\n".join(place.said)
    for part in (
        "NVIDIA H200, driver 580.1, SM clock, MHz ['1980', '1980'], 2026-11-25",
        "tileiras   13.5.37 6ff86caf8cf7: as recorded", "kernels    0 that ran: byte for byte",
        f"container  {IMAGE}: as recorded", "python     3.13.5: as recorded", "numpy      2.5.2: as recorded",
        "launch     not run, there is no NVIDIA H200: error: no NVIDIA driver on this machine",
    ):  # fmt: skip
        assert part in said
    assert "exact \n" in said and "torch" not in said
    compiled, image = (place.folder / "ran").read_text().splitlines()
    assert compiled.startswith("-m tilestack compile --target sm_90 --output") and "make_images runtime" in image
    assert place.rebuild(place.results()) == []  # once more, in the folder that is there


def test_each_difference_is_named(place: Place) -> None:
    other = {"tileiras": {"version": "13.5.37", "sha256": "000000000000"}}
    host = {**HOST, "image": "sha256:other", "packages": {"numpy": "2.4.0"}}
    bundle = {"sha256": "0" * 64, "commit": place.commit, "changes": "", "cells": {}}
    place.here = {"python": "3.12.3", "numpy": "2.4.0"}
    assert place.rebuild(place.results(tools=other, host=host, bundle=bundle)) == [
        "tileiras",
        "bundle",
        "container",
        "python",
    ]
    assert "packages   numpy==2.4.0: not those of the commit's lock, and without a recorded hash" in place.said
    assert "tileiras   13.5.37 6ff86caf8cf7: DIFFERS, 13.5.37 000000000000 is recorded" in place.said


def test_some_ops_alone_say_nothing_of_the_bundle(place: Place) -> None:
    assert place.rebuild(place.results(bundle={"sha256": "0", "commit": place.commit, "changes": ""}), "gelu") == []
    assert "bundle     gelu alone: its manifest is not comparable" in place.said
    assert "--op gelu --output" in (place.folder / "ran").read_text()


def test_where_there_is_a_gpu_it_launches(place: Place) -> None:
    place.gpus = "cdi"
    place.rebuild(place.results())
    assert place.said[-1] == "launch     12 passed cuda"


def test_the_published_results_say_enough() -> None:
    found = Record.load(PUBLISHED)
    assert found.gpu == "NVIDIA H200" and len(found.commit) == 40 and not found.changes and found.ran is None
    assert set(found.tools) == {"tileiras", "ptxas", "libnvvm"} and found.packages["numpy"] and found.device["driver"]


def test_records_that_nobody_can_build_again(place: Place, tmp_path: Path) -> None:
    for changed, why in (
        (
            {"commit": "", "bundle": {"sha256": "0", "commit": "", "changes": ""}},
            "does not say the commit of its bundle",
        ),
        ({"bundle": {"sha256": "0", "commit": place.commit, "changes": "abc"}}, r"uncommitted changes \(abc\)"),
    ):
        with pytest.raises(UsageError, match=why):
            Record.load(place.results(**changed))
    file = tmp_path / "other.json"
    for text in ("", "[]", '{"format": 2}', '{"format": 1, "environment": {}}'):
        file.write_text(text)
        with pytest.raises(UsageError, match=r"not a results\.json of ours|does not say where its results come from"):
            Record.load(file)
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        Record.load(tmp_path / "none.json")
    with pytest.raises(ToolFailed, match="git worktree add"):
        place.rebuild(place.results(bundle={"sha256": "0", "commit": "0" * 40, "changes": ""}))
    assert "not reproduced" in place.said[-1]
