"""The image that an engine has in the end. No image is made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.native import make_images as module
from toolchain.native.images import BuiltImage, Image, image
from toolchain.native.make_images import ensure, present


class Engine:
    """Takes in what an archive holds: here the id itself."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def has(self, digest: str) -> bool:
        return digest in self.known

    def load(self, archive: Path) -> list[str]:
        self.known.add(archive.read_text())
        return [archive.read_text()]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the archive is kept; what is made is `sha256:made`."""
    archive = tmp_path / "base.tar"

    def make(_: Image, output: Path) -> BuiltImage:
        output.write_text("sha256:made")
        return BuiltImage(output, "sha256:made", (), ())

    monkeypatch.setattr(module, "make", make)
    monkeypatch.setattr(module, "cached", lambda _: archive)
    return archive


def test_an_image_is_made_once(kept: Path):
    engine = Engine()
    assert ensure(engine, image("base")) == "sha256:made"  # pyright: ignore[reportArgumentType]
    kept.write_text("sha256:another")  # which is not looked at: the engine has it
    assert ensure(engine, image("base")) == "sha256:made"  # pyright: ignore[reportArgumentType]
    assert engine.known == {"sha256:made"}


def test_a_kept_archive_that_is_another_image_is_named(kept: Path):
    ensure(Engine(), image("base"))  # pyright: ignore[reportArgumentType]
    kept.write_text("sha256:another")
    with pytest.raises(ToolchainError, match=rf"{kept} is not the image sha256:made\n  next: rm {kept} "):
        ensure(Engine(), image("base"))  # pyright: ignore[reportArgumentType]


def test_an_image_is_present_once_the_engine_has_it_and_asking_makes_none(kept: Path):
    engine = Engine()
    assert present(engine, image("base")) is None  # pyright: ignore[reportArgumentType]
    assert not kept.exists()
    ensure(engine, image("base"))  # pyright: ignore[reportArgumentType]
    assert present(engine, image("base")) == "sha256:made"  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("kept")
def test_an_update_is_not_compared_with_the_image_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    saved: list[str] = []
    monkeypatch.setattr(module, "save", lambda name, made: saved.append(f"{name} {made.digest}"))
    assert module.main(["base", "--update", "--output", str(tmp_path)]) == 0
    assert saved == ["base sha256:made"]
    assert "base: sha256:made (0 packages)" in (said := capsys.readouterr()).out
    assert said.err == "", "its packages are others, so nothing is to be said of the id before"
    assert module.main(["base", "--output", str(tmp_path)]) == 0
    assert "same packages, but images.toml has sha256:" in capsys.readouterr().err
