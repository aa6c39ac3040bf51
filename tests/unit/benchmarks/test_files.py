from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.files import write_whole


def test_a_file_is_written_with_its_folder_and_anyone_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    for text in ("one", "another"):
        write_whole(path, text)
        assert path.read_text() == text
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("No space left on device"), KeyboardInterrupt()])
def test_what_ends_the_writing_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "b.json"
    write_whole(path, "old")

    def fail(_self: Path, _target: Path) -> Path:
        raise error

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(type(error)):
        write_whole(path, "new")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("b.json", "old")]
