"""The registered kernel sources: the short and the long form of a row in sources.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.contract.sources import Registered, best_of, packages, read_sources, registered
from toolchain.errors import UsageError


def write(folder: Path, text: str) -> Path:
    path = folder / "sources.toml"
    path.write_text(text)
    return path


def test_the_sources_of_this_tree() -> None:
    assert packages() == {"mlir": "kernels_mlir", "py": "kernels_py", "cute": "kernels_cute"}
    assert registered()["mlir"] == Registered("kernels_mlir")
    assert registered()["fastest"] == Registered(best_of=("mlir", "py", "cute"))
    assert (best_of("fastest"), best_of("mlir"), best_of("other")) == (("mlir", "py", "cute"), (), ())
    assert registered()["cute"] == Registered("kernels_cute", named_rows=True, borrows_from="mlir")


def test_a_row_is_a_package_or_says_more(tmp_path: Path) -> None:
    path = write(tmp_path, 'a = "kernels_a"\n\n[b]\npackage = "kernels_b"\nborrows_from = "a"\n')
    assert read_sources(path) == {"a": Registered("kernels_a"), "b": Registered("kernels_b", borrows_from="a")}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = 1\n", "a is 1, not a package or a table"),
        ("[a]\nborrows_from = 'a'\n", "either a package, or best_of"),
        ("[a]\npackage = 'p'\nbest_of = []\n", "either a package, or best_of"),
        ("[a]\nbest_of = ['b']\n", "a is the best of 'b', no source of kernels"),
        ("[a]\nbest_of = ['a']\n", "a is the best of 'a', no source of kernels"),
        ("[a]\npackage = 'p'\nrows = 1\n", "unknown rows"),
        ("[a]\npackage = 'p'\nborrows_from = 'b'\n", "a borrows from 'b', no other source"),
        ("[a]\npackage = 'p'\nborrows_from = 'a'\n", "a borrows from 'a', no other source"),
    ],
)
def test_a_wrong_row_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_sources(write(tmp_path, "\n" + text))
