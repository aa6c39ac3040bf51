"""Every folder of tests mirrors one of the tree."""

from __future__ import annotations

from toolchain.knobs import ROOT

# Of all kernel sources at once.
SEVERAL = {"kernels"}


def test_a_folder_of_tests_is_named_as_the_folder_that_it_tests() -> None:
    kinds = [kind for kind in (ROOT / "tests").iterdir() if (kind / "conftest.py").exists() or list(kind.glob("*/"))]
    folders = {path.parent.relative_to(kind) for kind in kinds for path in kind.rglob("test_*.py")}
    assert len(folders) > 50
    assert {str(folder) for folder in folders if not (ROOT / folder).is_dir()} == SEVERAL
