from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import SourceError
from toolchain.knobs import ROOT
from toolchain.tileir.check import as_json, check_file
from toolchain.tileir.compose.sample import check_parts, sample

WRONG = """\
global @g <f32: 1.0> : tile<4xf32>
entry @one(%n: tile<i32>) {
  %a = addf %n, %n : tile<i32>
  %b = mulf %n, %n : tile<i32>
  return
}
entry @two(%n: tile<i32>) {
  %c = nonsense
  return
}
entry @three() {
  %d = get_global @g : tile<ptr<f32>>
  return
}
"""


def places(text: str) -> list[tuple[int, str]]:
    rows = [as_json(error) for error in check_file(text.encode(), "k.mlir").errors]
    return [(row["line"], row["message"].split(":")[0]) for row in rows]


def test_what_does_not_parse_and_what_does_not_verify() -> None:
    assert places(WRONG) == [(3, "addf"), (4, "mulf"), (8, "there is no operation 'nonsense'")]
    assert check_file(WRONG.encode(), "k.mlir").entries == ["one", "three"]


def test_a_wrong_global_does_not_make_its_users_wrong() -> None:
    assert places(WRONG.replace("<f32: 1.0>", "<f32: >")) == [
        (1, "'>' is not a number of type f32"), (8, "there is no operation 'nonsense'")
    ]  # fmt: skip


def test_parts_of_a_kernel_source(tmp_path: Path) -> None:
    for path in (ROOT / "kernels_mlir").glob("*.mlir"):
        (tmp_path / path.name).write_text(path.read_text())
    path = tmp_path / "gelu.mlir"
    text = path.read_text()
    text += text[text.index("kernel @gelu") :].replace("@gelu op", "@again op")
    path.write_text(text)
    assert check_parts(path) == (list(sample(path).entries), []) == (["gelu", "again"], [])
    first, second = text.split("kernel @again")
    wrong = [
        part.replace("  return\n", f"  %none = {word}\n  return\n") for part, word in ((first, "foo"), (second, "bar"))
    ]
    path.write_text("kernel @again".join(wrong))
    right, errors = check_parts(path)
    assert right == [] and [str(error).split("'")[1] for error in errors] == ["foo", "bar"]
    with pytest.raises(SourceError) as caught:
        sample(path)
    assert str(caught.value) == str(errors[0])


@pytest.mark.parametrize(
    ("raw", "row"),
    [
        (b"\xff", {"kind": "UsageError", "file": None, "line": None, "column": None}),
        (b"\x7fTileIR", {"kind": "BytecodeError", "file": None, "line": None, "column": None}),
        (b"entry @k(*", {"kind": "SourceError", "file": "k.mlir", "line": 1, "column": 10}),
        (b"kernel @k op = gelu { return }", {"kind": "UsageError", "hint": "name the file"}),
    ],
)
def test_files_that_are_nothing(raw: bytes, row: dict[str, object]) -> None:
    (error,) = check_file(raw, "k.mlir").errors
    found = as_json(error)
    assert row.items() <= found.items() and found["message"]
