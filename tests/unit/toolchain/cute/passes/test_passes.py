"""Each pass by files that show a module before and after it.

A file is named as its pass. It has pairs that `// -----` separates: a module, a line `// becomes`, and the module after
the pass. What a pass refuses ends in `// error: TEXT` instead, which the message contains.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.cute.parse import parse
from toolchain.cute.passes import PASSES
from toolchain.errors import SourceError

FOLDER = Path(__file__).parent
CASES = [(path, part) for path in sorted(FOLDER.glob("*.mlir")) for part in path.read_text().split("// -----\n")]


@pytest.mark.parametrize(("path", "text"), CASES, ids=[f"{path.stem}-{i}" for i, (path, _) in enumerate(CASES)])
def test_before_and_after(path: Path, text: str) -> None:
    run = PASSES[path.stem]
    before, becomes, after = text.partition("// becomes\n")
    if not becomes:
        before, _, said = text.partition("// error: ")
        with pytest.raises(SourceError) as caught:
            run(parse(before, "k.mlir"))
        assert said.strip(), "the file says neither what it becomes nor the error"
        assert said.strip() in str(caught.value)
        return
    module = parse(before, "k.mlir")
    run(module)
    module.verify()
    assert str(module) == str(parse(after, "after.mlir"))


def test_every_pass_has_a_file() -> None:
    assert {path.stem for path, _ in CASES} == set(PASSES)
