"""The Python of docs/gpt.md, as it stands there."""

from __future__ import annotations

import re

import pytest

from toolchain.bundle import Bundle
from toolchain.knobs import ROOT

pytestmark = pytest.mark.needs("toolchain")


def test_the_example_runs(bundle: Bundle, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "gpt.md").read_text(), re.DOTALL)
    assert found is not None
    code = found[1].replace('"build/bundle"', repr(str(bundle.root))).replace('"auto"', '"cpu"')
    assert code != found[1]
    names: dict[str, object] = {}
    exec(compile(code, "docs/gpt.md", "exec"), names)
    assert len(capsys.readouterr().out) > 50  # of 100 new bytes
    assert names["likeliest"].shape == (2,)
