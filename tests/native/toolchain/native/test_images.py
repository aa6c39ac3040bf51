"""Images made for real: the same bytes twice, and the bytes that images.toml has."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from toolchain.errors import ToolFailed
from toolchain.native.images import image, make
from toolchain.pins import file_sha256

pytestmark = pytest.mark.needs("mmdebstrap")


def test_the_base_image_is_the_same_twice(tmp_path: Path):
    wanted = image("base")
    first = make(wanted, tmp_path / "one/base.tar")
    before = os.umask(0o077)
    try:
        second = make(wanted, tmp_path / "another/place/base.tar")
    finally:
        os.umask(before)
    assert first.digest == second.digest
    assert file_sha256(first.archive) == file_sha256(second.archive)
    # Where the mirror has moved on, the digest is another, and the packages that made it so are named.
    assert first.digest == wanted.digest or first.drift


def test_a_failure_writes_nothing(tmp_path: Path):
    wrong = dataclasses.replace(image("base"), packages=("no-such-package",))
    with pytest.raises(ToolFailed, match="no-such-package"):
        make(wrong, tmp_path / "base.tar")
    assert list(tmp_path.iterdir()) == []
