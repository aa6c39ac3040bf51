from __future__ import annotations

from pathlib import Path

import pytest

from ci.gate import thresholds
from toolchain.errors import UsageError


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tolerance = 0.015", "tolerance = 0.5"), ("rounds = 30", "rounds = 1"), ("share = 0.2", "share = 0.9"),
        ('"^(forward|decode) "', '"("'), ("detect = 0.05", ""), ('"ops"]', '"none"]'), ("[bimodal]", "[other]"),
    ],
)  # fmt: skip
def test_values_that_make_no_sense_are_refused(tmp_path: Path, old: str, new: str) -> None:
    text = thresholds.TABLE.read_text()
    assert old in text
    path = tmp_path / "gate.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match=r"gate\.toml"):
        thresholds.load(path)
