"""`tilestack interpret`."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from toolchain.knobs import ROOT
from toolchain.tileir import interpreter

from ..conftest import Run

GELU = ROOT / "kernels_mlir" / "gelu.mlir"


def test_interpret_runs_and_saves(run: Run, add_one: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([41, 7], np.float32))
    out = tmp_path / "out.npy"
    ran = run(
        "interpret", add_one, "--pointers", "--arg", tmp_path / "x.npy", "--arg", "2", "--save", f"0={out}", "--json"
    )
    assert ran.code == 0 and ran.err == ""
    assert np.load(out).tolist() == [42, 7]
    shown = json.loads(ran.out)
    assert (shown["entry"], shown["grid"]) == ("add_one", [1, 1, 1])
    assert shown["arguments"] == [
        {"name": "x", "kind": "array", "dtype": "f32", "shape": [2], "first": [42, 7], "sum": 49},
        {"name": "n", "kind": "number", "value": 2},
    ]


def test_json_is_json_whatever_a_kernel_prints_and_leaves(run: Run, add_one: Path, tmp_path: Path) -> None:
    printing = '    %t2 = print_tko "x is %f", %new : tile<f32> -> token\n    return'
    add_one.write_text(add_one.read_text().replace("    return", printing))
    np.save(tmp_path / "x.npy", np.array([np.inf, 7], np.float32))
    words = ["interpret", add_one, "--arg", tmp_path / "x.npy", "--pointers", "--arg", "2"]
    plain, shown = run(*words), run(*words, "--json")
    assert plain.code == shown.code == 0, plain.err
    assert plain.out.startswith("x is inf") and shown.err.startswith("x is inf")

    def refuse(name: str) -> None:
        pytest.fail(f"{name} is no JSON")

    row, _ = json.loads(shown.out, parse_constant=refuse)["arguments"]
    assert (row["first"], row["sum"]) == ([None, 7], None)


def test_json_counts_arrays_as_cutile_passes_them(run: Run) -> None:
    ran = run("interpret", GELU, "--grid", "1,2", "--arg", "bf16:2x8", "--arg", "zeros:bf16:2x8", "--json")
    x, out = json.loads(ran.out)["arguments"]
    assert (x["dtype"], x["shape"], len(x["first"]), out["shape"]) == ("bf16", [2, 8], 6, [2, 8])
    assert x["name"] != out["name"]


def test_interpret_passes_arrays_as_cutile_does(run: Run, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((7, 65)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "out.npy"
    arguments = ["--arg", f"bf16:{tmp_path / 'x.npy'}", "--arg", "zeros:bf16:7x65"]
    ran = run("interpret", GELU, "--grid", "1,7", *arguments, "--save", f"1={out}")
    assert ran.code == 0, ran.err
    expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(np.load(out), expected, atol=0.02)


def test_random_arguments_follow_the_seed(run: Run, add_one: Path) -> None:
    words = ["interpret", add_one, "--pointers", "--arg", "f32:100", "--arg", "1", "--seed"]
    one, again, two = (run(*words, seed).out for seed in ("1", "1", "2"))
    assert one == again != two


def test_what_the_interpreter_traps_has_its_place_in_the_text(run: Run, add_one: Path) -> None:
    words = ["interpret", add_one, "--pointers", "--arg", "zeros:f32:1", "--arg", "1"]
    race = run(*words, "--grid", "2")
    assert race.code == 8 and f"{add_one}:5:" in race.err and f"{add_one}:7:" in race.err
    assert run(*words, "--grid", "2", "--no-sanitize").code == 0
    outside = run(*words[:4], "zeros:f32:0", "--arg", "1")
    assert outside.code == 8 and "beyond its end" in outside.err


def test_blocks_that_wait_run_in_the_order_that_is_asked_for(run: Run, tmp_path: Path) -> None:
    """Each block waits for the one after it, and the last for none."""
    source = tmp_path / "chain.mlir"
    source.write_text("""
    cuda_tile.module @m { entry @chain(%flags: tile<ptr<i32>>) {
      %one = constant <i32: 1> : tile<i32>
      %block, %y, %z = get_tile_block_id : tile<i32>
      %mine = offset %flags, %block : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
      %next = offset %mine, %one : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
      %before = make_token : token
      %seen = loop iter_values(%t = %before) : token -> token {
        %value, %read = load_ptr_tko acquire device %next token = %t : tile<ptr<i32>> -> tile<i32>, token
        %set = cmpi equal %value, %one, signed : tile<i32> -> tile<i1>
        if %set { break %read : token }
        continue %read : token
      }
      %done = store_ptr_tko release device %mine, %one token = %seen : tile<ptr<i32>>, tile<i32> -> token
    } }""")
    np.save(tmp_path / "flags.npy", np.array([0, 0, 0, 1], np.int32))
    words = ["interpret", source, "--pointers", "--arg", tmp_path / "flags.npy", "--grid", "3"]
    ran = run(*words, "--schedule", "1", "--save", f"0={tmp_path / 'out.npy'}")
    assert ran.code == 0, ran.err
    assert np.load(tmp_path / "out.npy").tolist() == [1, 1, 1, 1]
    few = run(*words, "--schedule", "0", "--resident", "2")
    assert few.code == 8 and f"block (0, 0, 0) and 1 more at load_ptr_tko at {source}:9:" in few.err
    assert "block (2, 0, 0) cannot begin" in few.err and "(schedule 0)" in few.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--arg", "zeros:f32:1"], 2, "has 2 arguments, 1 are given"),
        (["--arg", "zeros:f16:1", "--arg", "1"], 2, "points to f32, it is given f16"),
        (["--arg", "1", "--arg", "1"], 2, "is ptr<f32>, it is given no array"),
        (["--arg", "zeros:f32:1", "--arg", "zeros:i32:1"], 2, "is i32, it is given an array"),
        (["--arg", "zeros:f32:1", "--arg", "1.5"], 6, "1.5"),
        (["--arg", "zeros:f32:1", "--arg", "3000000000"], 6, "argument 1 (n) is 3000000000, outside of i32"),
        (["--arg", "zeros:f32:1", "--arg", "x"], 2, "--arg 'x'"),
        (["--arg", "zeros:f99:1", "--arg", "1"], 2, "--arg 'zeros:f99:1'"),
        (["--arg", "missing.npy", "--arg", "1"], 2, "--arg missing.npy"),
        (["--arg", "f32:999999999x9999999", "--arg", "1"], 2, "--arg f32:999999999x9999999"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "0x1"], 2, "--grid '0x1'"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "1,1,1,1"], 2, "--grid"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "0"], 2, "--grid '0'"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "99999999999"], 2, "--grid '99999999999'"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "9" * 5000], 2, "--grid '999"),
        (["--arg", f"zeros:f32:{'9' * 5000}", "--arg", "1"], 2, "--arg zeros:f32:999"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "1,65536"], 2, "--grid '1,65536'"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--seed", "-1"], 2, "--seed"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--entry", "other"], 2, "no entry @other"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--save", "1=x.npy"], 2, "--save '1=x.npy'"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--save", "0=/no/such/folder/x.npy"], 2, "no folder /no/such/folder"),
    ],
)
def test_arguments_that_do_not_fit(run: Run, add_one: Path, words: list[str], code: int, said: str) -> None:
    ran = run("interpret", add_one, "--pointers", *words)
    assert ran.code == code and said in ran.err and ran.out == ""


def test_interpret_runs_no_entry_that_was_not_chosen(run: Run, add_one: Path) -> None:
    one = add_one.read_text()
    words = ["interpret", add_one, "--pointers", "--arg", "zeros:f32:1", "--arg", "1"]
    entry = one[one.index("  entry") : one.rindex("}")]
    add_one.write_text(one.replace(entry, entry + entry.replace("@add_one", "@second")))
    ran = run(*words)
    assert ran == (2, "", f"error: {add_one} has 2 entries\n  next: --entry, one of add_one, second\n")
    assert run(*words, "--entry", "second").code == 0
    ran = run(*words, "--entry", "")
    assert ran.code == 2 and "no entry @\n" in ran.err
    add_one.write_text(one.replace(entry, ""))
    for more in ([], ["--entry", "add_one"]):
        ran = run(*words, *more)
        assert ran.code == 2 and f"{add_one} has no entries, so there is nothing to run" in ran.err


def _npy(header: str) -> bytes:
    padded = f"{header:117}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no array",
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 7), }"),
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': ((((("),
    ],
    ids=["empty", "other", "too large", "header"],
)
def test_an_array_file_that_is_none(run: Run, add_one: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    for prefix in ("", "f32:"):
        ran = run("interpret", add_one, "--pointers", "--arg", f"{prefix}{tmp_path / 'x.npy'}", "--arg", "1")
        assert ran.code == 2 and "x.npy: " in ran.err and ran.out == ""


def test_arrays_of_what_is_no_number_are_refused(run: Run, add_one: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for array in (np.ones(2, np.complex64), np.array(["1", "2"]), np.ones(2, "M8[s]"), np.ones(2, [("a", "f4")])):
        np.save(path, array)
        for prefix in ("", "f32:"):
            ran = run("interpret", add_one, "--pointers", "--arg", f"{prefix}{path}", "--arg", "1")
            assert ran.code == 2 and "neither an integer nor a real number" in ran.err
    with path.open("wb") as file:
        np.savez(file, x=np.ones(2, np.float32))
    assert run("interpret", add_one, "--pointers", "--arg", path, "--arg", "1").code == 2


def test_an_array_file_of_the_other_byte_order(run: Run, add_one: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "x.npy", tmp_path / "out.npy"
    np.save(path, np.array([41, 7], ">f4"))
    assert run("interpret", add_one, "--pointers", "--arg", path, "--arg", "2", "--save", f"0={out}").code == 0
    assert np.load(out).tolist() == [42, 7]


def test_an_argument_is_saved_as_often_as_asked_for(run: Run, add_one: Path, tmp_path: Path) -> None:
    files = [tmp_path / "one.npy", tmp_path / "two.npy"]
    saves = [word for file in files for word in ("--save", f"0={file}")]
    assert run("interpret", add_one, "--pointers", "--arg", "zeros:f32:1", "--arg", "1", *saves).code == 0
    assert [np.load(file).tolist() for file in files] == [[1], [1]]


COPY = """\
entry @copy(%x: tile<ptr<DTYPE>>, %out: tile<ptr<DTYPE>>) {
  %value, %read = load_ptr_tko weak %x : tile<ptr<DTYPE>> -> tile<DTYPE>, token
  %stored = store_ptr_tko weak %out, %value token = %read : tile<ptr<DTYPE>>, tile<DTYPE> -> token
}
"""


@pytest.mark.parametrize(
    ("dtype", "numpy"),
    [("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", ml_dtypes.float8_e5m2), ("f8E8M0FNU", ml_dtypes.float8_e8m0fnu),
     ("bf16", ml_dtypes.bfloat16), ("tf32", np.float32), ("f64", np.float64), ("i1", np.bool_), ("i64", np.int64)],
)  # fmt: skip
def test_arrays_of_every_dtype(run: Run, tmp_path: Path, dtype: str, numpy: type) -> None:
    (tmp_path / "copy.mlir").write_text(COPY.replace("DTYPE", dtype))
    kept = np.float32 if dtype == "f8E5M2" else numpy  # numpy cannot read what it saves of this one
    np.save(tmp_path / "x.npy", np.ones(1).astype(kept))
    out = tmp_path / "out.npy"
    words = ["interpret", tmp_path / "copy.mlir", "--pointers", "--arg", f"{dtype}:{tmp_path / 'x.npy'}"]
    ran = run(*words, "--arg", f"{dtype}:2", "--save", f"1={out}", "--json")
    assert ran.code == 0, ran.err
    assert np.load(out)[0] == 1
    assert json.loads(ran.out)["arguments"][0]["dtype"] == dtype.replace("tf32", "f32")


F4 = """
!a = tensor_view<4xf4E2M1FN, strides=[1]>
!v = partition_view<tile=(4), !a>
entry @k(%p: tile<ptr<f4E2M1FN>>) {
  %zero = constant <i32: 0> : tile<i32>
  %a = make_tensor_view %p, shape = [4], strides = [1] : !a
  %v = make_partition_view %a : !v
  %six = constant <f4E2M1FN: 6.0> : tile<4xf4E2M1FN>
  %t = store_view_tko weak %six, %v[%zero] : tile<4xf4E2M1FN>, !v, tile<i32> -> token
}
"""


def test_elements_that_share_a_byte_are_given_as_bytes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.mlir").write_text(F4)
    out = tmp_path / "out.npy"
    words = ["interpret", tmp_path / "k.mlir", "--pointers", "--save", f"0={out}", "--arg"]
    assert run(*words, "zeros:i8:2").code == 0
    assert np.load(out).tolist() == [0x77, 0x77]
    assert "points to f4E2M1FN, it is given i16" in run(*words, "zeros:i16:2").err


@pytest.mark.parametrize(
    ("dtype", "number", "said"), [("f16", "70000", "outside of f16"), ("i1", "2", "outside of i1"), ("i8", "-1", "")]
)
def test_a_number_fits_its_parameter_as_it_does_for_load(
    run: Run, tmp_path: Path, dtype: str, number: str, said: str
) -> None:
    (tmp_path / "k.mlir").write_text(f"entry @k(%n: tile<{dtype}>) {{ }}")
    ran = run("interpret", tmp_path / "k.mlir", f"--arg={number}")
    assert (ran.code, ran.err) == ((6, f"error: k: argument 0 (n) is {number}, {said}\n") if said else (0, ""))


# The sums of arrays in a list, each of two elements: a table of pointer, size and stride, and the number of arrays.
SUMS = """\
!row = !cuda_tile.tile<1x4xi64>
!table = !cuda_tile.tensor_view<?x3xi64, strides=[3,1]>
!rows = !cuda_tile.partition_view<tile=(1x4), !table>
entry @sums(
  %xs: tile<ptr<i64>>, %count: tile<i32>, %out: tile<ptr<f32>>, %n: tile<i32>, %stride: tile<i32>
) {
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %table = make_tensor_view %xs, shape = [%count, 3], strides = [3, 1] : tile<i32> -> !table
  %rows = make_partition_view %table : !rows
  for %at in (%zero to %count, step %one) : tile<i32> {
    %row, %t = load_view_tko weak %rows[%at, %zero] : !rows, tile<i32> -> !row, token
    %word = extract %row[%zero, %zero] : !row -> tile<1x1xi64>
    %number = reshape %word : tile<1x1xi64> -> tile<i64>
    %first = int_to_ptr %number : tile<i64> -> tile<ptr<f32>>
    %a, %t0 = load_ptr_tko weak %first : tile<ptr<f32>> -> tile<f32>, token
    %second = offset %first, %one : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %b, %t1 = load_ptr_tko weak %second : tile<ptr<f32>> -> tile<f32>, token
    %sum = addf %a, %b : tile<f32>
    %to = offset %out, %at : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %t2 = store_ptr_tko weak %to, %sum token = %t1 : tile<ptr<f32>>, tile<f32> -> token
    continue
  }
}
"""


def test_a_list_of_arrays_and_views(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sums.mlir").write_text(SUMS)
    for name, start in (("x", 0), ("y", 10)):
        np.save(tmp_path / f"{name}.npy", np.arange(start, start + 4, dtype=np.float32))
    x, y, out, y_out = (tmp_path / name for name in ("x.npy", "y.npy", "out.npy", "y_out.npy"))
    words = ["interpret", tmp_path / "sums.mlir", "--arg", f"[{x},{y},{x}]", "--arg", "zeros:f32:3", "--json"]
    ran = run(*words, "--save", f"1={out}", "--save", f"0[1]={y_out}")
    assert ran.code == 0, ran.err
    assert np.load(out).tolist() == [1, 21, 1] and np.load(y_out).tolist() == [10, 11, 12, 13]
    table, sums = json.loads(ran.out)["arguments"]
    assert (table["name"], table["kind"], [row["sum"] for row in table["items"]]) == ("xs", "list", [6, 46, 6])
    assert sums["first"] == [1, 21, 1]


def test_a_view_shares_the_memory_of_its_array(run: Run, add_one: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32))
    two = add_one.read_text()
    add_one.write_text(two.replace("%n: ", "%y: tile<ptr<f32>>, %n: "))
    ran = run(
        "interpret",
        add_one,
        "--pointers",
        "--arg",
        tmp_path / "x.npy",
        "--arg",
        "view:0:0:2x2:3x1",
        "--arg",
        "1",
        "--json",
    )
    assert ran.code == 0, ran.err
    x, view, _ = json.loads(ran.out)["arguments"]
    assert x["first"] == [1, 1, 2, 3, 4, 5] and (view["shape"], view["first"]) == ([2, 2], [1, 1, 3, 4])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["view:0:0:2"], "argument 0 is no array without gaps before this one"),
        (["f32:8", "view:0:4:5"], "it reaches to element 8 of an array of 8"),
        (["f32:8", "view:0:4"], "write view:N:FIRST:SIZES"),
        (["f32:8", "view:0:0:2x2:3"], "write view:N:FIRST:SIZES"),
        (["[f32:8,i32:8]"], "a list holds arrays of one dtype and rank"),
        (["[f32:8,3]"], "a list holds arrays of one dtype and rank"),
        (["[]"], "is not a .npy file"),
    ],
)
def test_lists_and_views_that_are_none(run: Run, add_one: Path, arguments: list[str], said: str) -> None:
    ran = run("interpret", add_one, *(word for argument in arguments for word in ("--arg", argument)))
    assert ran.code == 2 and said in ran.err


PADDED = """\
entry @padded(%x: tile<ptr<f32>>, %n: tile<i32>, %s: tile<i32>, %out: tile<ptr<f32>>, %m: tile<i32>, %t: tile<i32>) {
  %zero = constant <i32: 0> : tile<i32>
  %a = make_tensor_view %x, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>
  %as = make_partition_view %a : partition_view<tile=(4), tensor_view<?xf32, strides=[1]>>
  %tile, %r = load_view_tko weak %as[%zero] : partition_view<tile=(4), tensor_view<?xf32, strides=[1]>>, tile<i32> -> tile<4xf32>, token
  %sum = reduce %tile dim=0 identities=[0.0 : f32] : tile<4xf32> -> tile<f32> (%l: tile<f32>, %e: tile<f32>) {
    %both = addf %l, %e : tile<f32>
    yield %both : tile<f32>
  }
  %w = store_ptr_tko weak %out, %sum : tile<ptr<f32>>, tile<f32> -> token
}
"""  # noqa: E501


def test_padding_that_nobody_set_is_an_error_or_zero(run: Run, tmp_path: Path) -> None:
    """With a warning for the load, once, with its place."""
    source, x = tmp_path / "padded.mlir", tmp_path / "x.npy"
    source.write_text(PADDED)
    np.save(x, np.array([1, 2, 4], np.float32))
    words = ["interpret", source, "--arg", x, "--arg", "zeros:f32:1", "--json"]
    strict = run(*words)
    assert strict.code == 8 and "unspecified value" in strict.err and f"{source}:10:" in strict.err
    assert run(*words, "--padding", "strict").err == strict.err
    with pytest.warns(interpreter.PaddingWarning, match="load_view_tko has no padding value") as warned:
        zero = run(*words, "--padding", "zero")
    assert zero.code == 0 and json.loads(zero.out)["arguments"][1]["first"] == [7]
    assert [(one.filename, one.lineno) for one in warned] == [(str(source), 5)]
    assert run(*words, "--padding", "nan").code == 2
