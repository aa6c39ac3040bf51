"""Hints that the verifier refuses and the compiler ignores: the reason why the verifier looks at them at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import SourceError
from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import verify

REFUSED = ["sm_999 = {occupancy = 7}", "sm_90 = {occupancie = 7}", "sm_90 = {occupancy = 33}"]


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("hints", REFUSED)
def test_the_compiler_ignores_what_the_verifier_refuses(hints: str, tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    module = text.parse(f"entry @k() optimization_hints=<{hints}> {{ return }}", filename="k.mlir")
    with pytest.raises(SourceError, match="optimization_hints: "):
        verify(module)
    path = tmp_path / "k.tilebc"
    path.write_bytes(bytecode.write(module, "13.4"))
    tool("tileiras").run(["--gpu-name=sm_90", "-o", str(tmp_path / "k.cubin"), str(path)])
