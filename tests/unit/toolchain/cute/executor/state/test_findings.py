"""What a finding says, and that each kind is public and documented."""

from __future__ import annotations

import pytest

from toolchain.cute import executor
from toolchain.cute.executor import FaultLocation, Finding, Race
from toolchain.errors import SanitizerError
from toolchain.knobs import ROOT

KINDS = sorted(Finding.__subclasses__(), key=lambda kind: kind.__name__)


@pytest.mark.parametrize(
    ("site", "said"),
    [
        (
            FaultLocation("k", "arith.addi", "k.py:3:5", (1, 2, 3), 7),
            "k: arith.addi at k.py:3:5, block (1, 2, 3), thread 7",
        ),
        (FaultLocation("k", "arith.addi", "", (0, 0, 0)), "k: arith.addi, block (0, 0, 0)"),
        (FaultLocation("k", "arith.addi", "", (0, 0, 0), 0), "k: arith.addi, block (0, 0, 0), thread 0"),
    ],
)
def test_a_site(site: FaultLocation, said: str) -> None:
    assert str(site) == said


def test_a_finding_has_its_site_its_tensor_and_a_hint() -> None:
    site = FaultLocation("k", "llvm.load", "", (0, 0, 0), 3)
    found = Race(site, "reads byte 4", tensor="x", address=4)
    assert isinstance(found, SanitizerError)
    assert (found.site, found.what, found.tensor, found.address) == (site, "reads byte 4", "x", 4)
    assert str(found) == f"{site}: reads byte 4\n  next: {Race.hint_text}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_is_public_and_in_the_documentation(kind: type[Finding]) -> None:
    assert getattr(executor, kind.__name__) is kind and kind.__name__ in executor.__all__
    assert f"| `{kind.__name__}` |" in (ROOT / "docs/cute-executor.md").read_text()
