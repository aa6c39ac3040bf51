"""Files that are replaced at once, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpt.tuning.files import write_whole


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("method", ["write_text", "replace"])
def test_what_could_not_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, error: BaseException
) -> None:
    path = tmp_path / "new" / "measured.json"
    write_whole(path, "old")
    step = getattr(Path, method)

    def fails(self: Path, argument: object) -> None:
        step(self, argument) if method == "write_text" else None
        raise error

    monkeypatch.setattr(Path, method, fails)
    with pytest.raises(type(error)):
        write_whole(path, "new")
    assert [p.name for p in path.parent.iterdir()] == ["measured.json"] and path.read_text() == "old"
