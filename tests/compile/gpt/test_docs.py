"""The Python of docs/gpt.md, as it stands there."""

from __future__ import annotations

import re

import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.knobs import ROOT

pytestmark = pytest.mark.needs("toolchain")


def test_the_examples_run(bundle: Bundle, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "gpt.md").read_text(), re.DOTALL)
    assert len(found) == 3
    code = found[0]
    for old, new in (('Bundle.load("build/bundle")', "bundle"), ('"auto"', '"cpu"'), ("tokens=100", "tokens=20")):
        assert code.count(old) == 1
        code = code.replace(old, new)
    names: dict[str, object] = {"bundle": bundle}
    exec(compile(code, "docs/gpt.md", "exec"), names)
    assert len(capsys.readouterr().out) > 10  # of 20 new bytes
    assert names["likeliest"].shape == (2,)
    exec(compile(found[1], "docs/gpt.md", "exec"), names)
    assert capsys.readouterr().out.endswith("(2, 257)\n")
    assert names["cache"].lengths.tolist() == [14, 14]
    exec(compile(found[2], "docs/gpt.md", "exec"), names)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert sorted((text, ended) for text, _, ended in lines) == sorted(
        [("0", "False"), ("1", "False")] * 4 + [("0", "True"), ("1", "True")]
    )
