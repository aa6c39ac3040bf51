"""The matrix in the runtime container, tested without a container: the requests to the engine."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from toolchain.errors import UsageError
from toolchain.native import gpu
from toolchain.native.engine import Container


class Engine:
    version = "Stub 1"

    def __init__(self, gpus: str) -> None:
        self.given = gpus
        self.ran: list[tuple[Container, list[str]]] = []

    def gpus(self) -> str:
        return self.given

    def run(self, container: Container, command: Sequence[str], *, on_line: Callable[[str], None]) -> str:
        self.ran.append((container, list(command)))
        on_line("a line")
        return ""


@pytest.fixture(autouse=True)
def image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpu, "ensure", lambda _, wanted: f"sha256:{wanted.name}")
    monkeypatch.setattr(gpu, "cache_dir", lambda: tmp_path / "cache")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle/manifest.json").write_text("{}")
    return tmp_path / "bundle"


def test_only_the_installing_has_a_network_and_only_the_run_has_gpus(bundle: Path, tmp_path: Path, capsys):
    engine = Engine("cdi")
    gpu.run(engine, bundle, tmp_path / "report", ["--op", "gelu"])  # pyright: ignore[reportArgumentType]
    (installing, script), (running, command) = engine.ran
    assert (installing.network, installing.gpus) == (True, "none")
    assert (running.network, running.gpus) == (False, "cdi")
    assert "--require-hashes" in script[-1]
    assert command[-2:] == ["--op", "gelu"]
    assert running.image == "sha256:runtime"
    assert running.mounts[bundle] == ("/bundle", "ro")
    assert running.environment["TILESTACK_IMAGE"] == "sha256:runtime"
    assert (tmp_path / "report").is_dir()
    assert "CPU" not in capsys.readouterr().out


def test_only_one_run_installs_at_a_time(bundle: Path, tmp_path: Path):
    held: list[bool] = []

    class Looking(Engine):
        def run(self, container: Container, command: Sequence[str], *, on_line: Callable[[str], None]) -> str:
            with (tmp_path / "cache/runtime/lock").open() as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    held.append(False)
                except BlockingIOError:
                    held.append(True)
            return super().run(container, command, on_line=on_line)

    gpu.run(Looking("none"), bundle, tmp_path / "report", [])  # pyright: ignore[reportArgumentType]
    assert held == [True, False]


def test_other_versions_of_packages_have_a_folder_of_their_own(bundle: Path, tmp_path: Path):
    engine = Engine("none")
    for exact in ([], ["numpy==2.4.0"]):
        gpu.prepare(engine, bundle, tmp_path / "report", exact=exact)  # pyright: ignore[reportArgumentType]
    (_, usual), (_, other) = engine.ran
    assert "numpy==2.4.0" not in usual[-1] and usual[-1].split()[2] != other[-1].split()[2]
    locked, more = other[-1].split("-r /checkout/containers/runtime.lock && ")
    assert "--require-hashes" in locked and "--require-hashes" not in more and "numpy==2.4.0" in more


def test_without_gpus_for_containers_it_says_what_runs_instead(bundle: Path, tmp_path: Path, capsys):
    gpu.run(Engine("none"), bundle, tmp_path / "report", [])  # pyright: ignore[reportArgumentType]
    said = capsys.readouterr().out
    assert "the CPU interpreter runs" in said
    assert "nvidia-ctk cdi generate" in said


def test_a_bundle_that_is_not_there_is_an_error_before_anything_runs(tmp_path: Path):
    engine = Engine("none")
    with pytest.raises(UsageError, match="no bundle in"):
        gpu.run(engine, tmp_path, tmp_path / "report", [])  # pyright: ignore[reportArgumentType]
    assert engine.ran == []
