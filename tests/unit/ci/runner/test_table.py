"""Mistakes in health.toml are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.runner.table import TABLE, load
from toolchain.errors import UsageError


def test_every_rule_is_used() -> None:
    assert {field.rule for field in load().fields} == {"most", "least", "is", "without", "same_as"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("least = 580", "least = 580\nmost = 600", "field driver_version: it has 2 rules"),
        ("least = 580", "", "field driver_version: it has 0 rules"),
        ("least = 580", "lest = 580", "field driver_version: unknown lest"),
        ("most = 80", 'most = "80"', "field temperature.gpu: most is '80', not an integer"),
        ("free_gib = 20", "", "limits: it has no free_gib"),
        ('[["journalctl", ', '["journalctl", ["', "not valid TOML"),
        ('["dmesg"]', '"dmesg"', "kernel_log: commands is"),
        ("code = 79", 'code = "79"', "xid 79: code is '79'"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "health.toml"
    path.write_text(TABLE.read_text().replace(old, new, 1))
    with pytest.raises(UsageError, match=said):
        load(path)
