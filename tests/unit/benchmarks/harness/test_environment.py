from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.harness import environment
from toolchain.bundles import checkout as checkouts
from toolchain.bundles.bundle import Bundle, write


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return write(tmp_path / "bundle", [], {"tileiras": {"version": "13.5", "sha256": "ab"}})


@pytest.mark.usefixtures("checkout")
def test_the_description_names_what_was_measured(bundle: Bundle) -> None:
    found = environment.describe(bundle, {}, {"gpu": "H200"}, checkouts.commit(bundle.root))
    assert (found["gpu"], found["changes"]) == ("H200", "")
    assert found["tools"] == {"tileiras": {"version": "13.5", "sha256": "ab"}}
    assert len(found["bundle"]) == 64
    assert "numpy" in found["packages"]
    assert "against" not in found
    checkouts.stamp(bundle.root)
    beside = environment.describe(bundle, {"old": bundle}, {}, {})["against"]["old"]
    assert (beside["bundle"], beside["tools"]) == (found["bundle"], found["tools"])
    assert beside["commit"] == checkouts.commit(bundle.root)["commit"]
    json.dumps(found)
