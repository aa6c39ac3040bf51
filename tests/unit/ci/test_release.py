"""What a release consists of."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from ci import release
from toolchain.bundles.bundle import MANIFEST
from toolchain.bundles.checkout import COMMIT
from toolchain.errors import ToolchainError


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle-sm_90"
    folder.mkdir()
    (folder / MANIFEST).write_text("{}")
    (folder / COMMIT).write_text("{}")
    return folder


def write(words: Sequence[str | Path]) -> None:
    """In place of a command: writes its output, or the wheel."""
    if "--out-dir" in words:
        (Path(words[words.index("--out-dir") + 1]) / "tilestack.whl").write_text("wheel")
        return
    *_, bundle, _, output = words
    Path(output).write_text(" ".join(sorted(path.name for path in Path(bundle).iterdir())))


def test_a_bundle_is_packed_without_the_note_of_its_commit_and_all_is_summed(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "run", write)
    output = tmp_path / "release"
    assert release.main([str(bundle), "--output", str(output)]) == 0
    names = ["SHA256SUMS", *(f"bundle-sm_90.{end}" for end in ("cdx.json", "intoto.json", "tar.xz")), "tilestack.whl"]
    assert sorted(path.name for path in output.iterdir()) == names
    assert (output / "bundle-sm_90.tar.xz").read_text() == MANIFEST
    digest = hashlib.sha256(b"wheel").hexdigest()
    assert f"{digest}  tilestack.whl\n" in (output / "SHA256SUMS").read_text()


@pytest.mark.parametrize(("made", "code"), [(["release"], 2), ([], 2)])
def test_a_folder_that_is_there_and_a_bundle_that_is_not_are_errors_before_anything_is_written(
    made: list[str], code: int, tmp_path: Path, bundle: Path
) -> None:
    for name in made:
        (tmp_path / name).mkdir()
    given = bundle if made else tmp_path / "none"
    assert release.main([str(given), "--output", str(tmp_path / "release")]) == code
    assert list((tmp_path / "release").iterdir() if made else []) == []


def test_a_release_that_fails_leaves_nothing(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(words: Sequence[str | Path]) -> None:
        write(words)
        if "sbom" in words:
            raise ToolchainError("of the test")

    monkeypatch.setattr(release, "run", fail)
    assert release.main([str(bundle), "--output", str(tmp_path / "release")]) == ToolchainError.exit_code
    assert not (tmp_path / "release").exists()
