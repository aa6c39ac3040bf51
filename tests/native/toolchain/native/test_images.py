"""Images made for real: the same bytes twice, and the bytes that images.toml has."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from toolchain.errors import ToolFailed
from toolchain.native.images import BuiltImage, Image, image, make
from toolchain.pinned.pins import file_sha256

pytestmark = pytest.mark.needs("mmdebstrap")


def made_for_me_alone(wanted: Image, archive: Path) -> BuiltImage:
    """An image whose files nobody else may read where they are made."""
    before = os.umask(0o077)
    try:
        return make(wanted, archive)
    finally:
        os.umask(before)


def test_the_base_image_is_the_one_in_the_table(tmp_path: Path):
    """Made at another place and time and with another umask than that one was."""
    wanted = image("base")
    made = made_for_me_alone(wanted, tmp_path / "base.tar")
    # Where the mirror has moved on, the digest is another, and the packages that made it so are named.
    assert made.digest == wanted.digest or made.drift
    if made.drift:  # so that the table's digest tells nothing
        again = make(wanted, tmp_path / "another/place/base.tar")
        assert again.digest == made.digest
        assert file_sha256(again.archive) == file_sha256(made.archive)


def test_a_failure_writes_nothing(tmp_path: Path):
    wrong = dataclasses.replace(image("base"), packages=("no-such-package",))
    with pytest.raises(ToolFailed, match="no-such-package"):
        make(wrong, tmp_path / "base.tar")
    assert list(tmp_path.iterdir()) == []
