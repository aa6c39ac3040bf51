"""benchmarks/studies/ops.py: lines are counted without comments and blank lines."""

import pytest

from benchmarks.studies import ops


def test_comments_and_blank_lines_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(ops, "HERE", tmp_path)
    (tmp_path / "layernorm.cu").write_text("// words\n\nint a;  // more\n  // indented\nint b;\n")
    (tmp_path / "triton_kernels.py").write_text(
        "import x\n\n\n@jit\ndef layernorm(a):\n    # why\n    b\n\n\ndef other():\n    c\n"
    )
    assert ops.lines("layernorm", "cuda") == 2
    assert ops.lines("layernorm", "triton") == 3


@pytest.mark.parametrize("op", ["layernorm", "attention"])
@pytest.mark.parametrize("language", ["cuda", "triton", "cutile", "tile-ir"])
def test_every_kernel_is_there(op, language):
    assert 10 <= ops.lines(op, language) <= 120
