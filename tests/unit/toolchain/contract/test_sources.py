"""The registered kernel sources: the short and the long form of a row in sources.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.contract.sources import Registered, packages, read_sources, registered
from toolchain.errors import UsageError


def write(folder: Path, text: str) -> Path:
    path = folder / "sources.toml"
    path.write_text(text)
    return path


def test_the_sources_of_this_tree() -> None:
    assert packages() == {"mlir": "kernels_mlir", "py": "kernels_py", "cute": "kernels_cute"}
    assert registered()["mlir"] == Registered("kernels_mlir")
    assert registered()["cute"] == Registered("kernels_cute", named_rows=True, borrows_from="mlir")


def test_a_row_is_a_package_or_says_more(tmp_path: Path) -> None:
    path = write(tmp_path, 'a = "kernels_a"\n\n[b]\npackage = "kernels_b"\nborrows_from = "a"\n')
    assert read_sources(path) == {"a": Registered("kernels_a"), "b": Registered("kernels_b", borrows_from="a")}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = 1\n", "a is 1, not a package or a table"),
        ("[a]\nborrows_from = 'a'\n", "it has no package"),
        ("[a]\npackage = 'p'\nrows = 1\n", "unknown rows"),
        ("[a]\npackage = 'p'\nborrows_from = 'b'\n", "a borrows from 'b', no other source"),
        ("[a]\npackage = 'p'\nborrows_from = 'a'\n", "a borrows from 'a', no other source"),
    ],
)
def test_a_wrong_row_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_sources(write(tmp_path, "\n" + text))
