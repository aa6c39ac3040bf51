"""What TILESTACK_INTERPRET says."""

from __future__ import annotations

import pytest

from toolchain.emulation.settings import Settings, parse
from toolchain.errors import UsageError


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("1", Settings("sm_100", True, "zero")),
        ("target=sm_90", Settings("sm_90")),
        ("sanitize=off, padding=strict", Settings(sanitize=False, padding="strict")),
    ],
)
def test_settings_are_read(text: str, settings: Settings) -> None:
    assert parse(text) == settings
    assert parse(settings.text()) == settings


@pytest.mark.parametrize(
    ("text", "said"),
    [("yes", "'yes' says nothing"), ("padding=one", "'padding=one'"), ("target=sm_1", "no target sm_1")],
)
def test_what_says_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(text)


def test_a_target_says_the_compute_capability() -> None:
    assert Settings("sm_90").capability == (9, 0)
