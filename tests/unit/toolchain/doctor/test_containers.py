"""Engines that do not answer, and descriptions of GPUs that are absent or old."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from toolchain.doctor import containers
from toolchain.native import engine

DRIVER = "580.159.03"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture
def cdi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(engine, "CDI", (tmp_path,))
    return tmp_path / "nvidia.yaml"


def test_an_engine_that_listens(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_ENGINE", f"unix://{folder}/s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/s")
        listening.listen()
        assert containers.container_engine().status == "ok"


def test_an_engine_that_was_asked_for_and_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILESTACK_ENGINE", f"unix://{folder}/s")
    line = containers.container_engine()
    assert (line.subject, line.status) == ("container engine", "bad")
    assert line.found == f"{folder}/s: No such file or directory" and "unset TILESTACK_ENGINE" in line.advice


@pytest.mark.parametrize(
    ("problem", "advice"),
    [
        ("Permission denied", "sudo usermod -aG docker $USER"),
        ("Connection refused", "sudo systemctl start docker"),
        ("No such file or directory", "sudo apt install podman"),
    ],
)
def test_an_engine_that_nobody_asked_for_is_a_note(problem: str, advice: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "addresses", lambda: ["unix:///var/run/docker.sock"])
    monkeypatch.setattr(engine, "unreachable", Mock(return_value=problem))
    monkeypatch.setattr(containers, "engine_address", lambda: None)
    line = containers.container_engine()
    assert line.status == "note" and "only building the native tools" in line.found and advice in line.advice


def test_gpus_without_a_description_for_containers(cdi: Path):
    line = containers.cdi(DRIVER)
    assert line is not None and line.status == "note" and str(cdi.parent) in line.found
    assert line.advice == containers.GENERATE
    assert containers.cdi(None) is None


def test_a_description_of_an_older_driver(cdi: Path):
    cdi.write_text("hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15\n")
    line = containers.cdi(DRIVER)
    assert line is not None and (line.status, line.device) == ("bad", True)
    assert f"is of driver 570.86.15, and {DRIVER} is loaded" in line.found and line.advice == containers.GENERATE
    cdi.write_text(f"hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{DRIVER}\n")
    assert (line := containers.cdi(DRIVER)) is not None and line.status == "ok"


def test_a_description_that_may_not_be_read(cdi: Path):
    cdi.mkdir()  # root, who may run the tests, may read any file
    line = containers.cdi(DRIVER)
    assert line is not None and line.status == "bad" and "Is a directory" in line.found and "chmod a+r" in line.advice
