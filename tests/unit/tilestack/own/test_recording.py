"""A recording on disk: what is read is what was written, and what is damaged is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilestack.own.recording import MANIFEST, Files, Recording, write
from toolchain.errors import BundleError, UsageError

from .conftest import MakeRecording


def test_it_is_read_as_it_was_written(recorded: MakeRecording) -> None:
    made = recorded("one")
    again = Recording.load(made.root)
    assert again.cells == made.cells and len(made.cells) == 3
    assert again.commit == {"commit": "one commit", "changes": ""} and again.targets == ("sm_90",)
    assert made.problem(made.cells[0]).case == "axpy M=2 N=3 f32"


def test_the_same_contents_have_one_hash_whatever_the_commit(recorded: MakeRecording) -> None:
    one = recorded("one")
    (one.root / "commit.json").unlink()
    before = one.sha256
    assert Recording.load(one.root).sha256 == before == recorded("one").sha256 != recorded("two").sha256


def test_other_inputs_than_those_that_were_recorded_are_an_error(recorded: MakeRecording) -> None:
    made = recorded("one")
    text = (made.root / MANIFEST).read_text()
    (made.root / MANIFEST).write_text(text.replace('"seed": 1', '"seed": 2'))
    with pytest.raises(BundleError, match="numpy draws other inputs here"):
        Recording.load(made.root).problem(made.cells[0])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [('"format": 1', '"format": 9', "has format 9"), ('"cells"', '"cell"', "damaged: KeyError"), ("{", "", "damaged")],
)
def test_a_damaged_manifest_is_said(recorded: MakeRecording, old: str, new: str, said: str) -> None:
    made = recorded("one")
    path = made.root / MANIFEST
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(BundleError, match=said):
        Recording.load(made.root)


def test_a_damaged_file_is_said(recorded: MakeRecording) -> None:
    made = recorded("one")
    name = made.cells[0].launches[0].code
    (made.root / "files" / name).write_bytes(b"other")
    with pytest.raises(BundleError, match="is damaged"):
        made.read(name)
    (made.root / "files" / name).unlink()
    with pytest.raises(BundleError, match="lacks"):
        made.read(name)


def test_a_folder_with_other_files_is_left_alone(recorded: MakeRecording, tmp_path: Path) -> None:
    made = recorded("one")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("mine")

    with pytest.raises(UsageError, match="is no recording"):
        write(tmp_path / "mine", made.root / "matrix.toml", 1, (), {}, [], Files(), {})
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]
    assert not list(tmp_path.glob(".mine*"))
