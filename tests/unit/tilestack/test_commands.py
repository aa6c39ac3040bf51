"""compile, inspect, generate, matrix, report and doctor, as far as no tool of the toolchain is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilestack.__main__ import parser
from tilestack.cli.compile import chosen_entries
from toolchain.bundles.bundle import Bundle

from .conftest import Run


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))


def test_compile_to_bytecode(run: Run, tmp_path: Path) -> None:
    words = ["compile", "--source", "mlir", "--op", "gelu", "--op", "softmax", "--dtype", "bf16", "--no-targets"]
    first = run(*words, "--json", "--output", tmp_path / "b")
    assert first.code == 0 and first.err == ""
    shown = json.loads(first.out)
    assert shown["entries"] == shown["made"] > 1 and (shown["cached"], shown["targets"]) == (0, [])
    entries = Bundle.load(tmp_path / "b").entries
    assert {(e.spec.op, e.spec.dtype, e.spec.source) for e in entries} == {
        ("gelu", "bf16", "mlir"),
        ("softmax", "bf16", "mlir"),
    }
    again = run(*words, "--output", tmp_path / "b")
    assert (
        f"{shown['entries']} entries for no target: bytecode only; 0 made, {shown['made']} from the cache" in again.out
    )


def test_compile_chooses_entries_by_name(run: Run, tmp_path: Path) -> None:
    words = ["compile", "--entries", "^mlir/(gelu|softmax).*f32$", "--no-targets", "--output", tmp_path / "b"]
    assert run(*words).code == 0
    names = [(e.spec.source, e.spec.op, e.spec.dtype) for e in Bundle.load(tmp_path / "b").entries]
    assert set(names) == {("mlir", "gelu", "f32"), ("mlir", "softmax", "f32")}


def test_compile_takes_what_a_model_launches_as_one_op() -> None:
    def chosen(*words: str) -> set[tuple[str, str, str]]:
        entries = chosen_entries(parser().parse_args(["compile", *words]))
        return {(spec.source, spec.op, spec.dtype) for _, spec in entries}

    model = chosen("--source", "cute", "--op", "forward", "--dtype", "bf16")
    assert {("cute", "linear", "bf16"), ("mlir", "embedding", "bf16"), ("mlir", "next_token", "f32")} <= model
    assert {row for row in model if row[2] != "bf16"} == {
        ("mlir", "next_token", "f32"), ("mlir", "next_token_of_ranks", "f32"),
    }  # fmt: skip
    tf32 = chosen("--source", "py", "--op", "forward", "--dtype", "tf32")
    assert {("py", "linear", "tf32"), ("py", "layernorm", "f32")} <= tf32
    assert {source for source, _, _ in tf32} == {"py"}


@pytest.mark.parametrize("dtype", ["tf32", "bf16"])
def test_compile_keeps_what_a_model_in_any_dtype_launches(dtype: str) -> None:
    entries = chosen_entries(parser().parse_args(["compile", "--source", "mlir", "--dtype", dtype]))
    others = {spec.op for _, spec in entries if spec.dtype != dtype}
    assert others == {"next_token", "next_token_of_ranks"}, "their arrays are f32 and i32 in every model"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--op", "nope"], "no op nope\n  next: one of embedding"),
        (["--dtype", "f8"], "no dtype f8\n  next: one of f32"),
        (["--op", "linear_f8", "--dtype", "f16"], "no entry has this op, dtype and name"),
        (["--op", "gelu", "--entries", "py/linear"], "no entry has this op, dtype and name"),
        (["--entries", "("], "'(' is not a regular expression"),
        (["--target", "sm_1"], "no target sm_1\n  next: one of sm_80"),
        (["--jobs", "0"], "--jobs 0"),
        (["--bytecode", "abc"], "bytecode version 'abc'"),
        (["--bytecode", "13.1", "--target", "sm_90"], "sm_90 needs bytecode 13.3"),
        (["--target", "sm_80", "--no-targets"], "not allowed with"),
    ],
)
def test_compile_refuses_before_it_starts(run: Run, tmp_path: Path, words: list[str], said: str) -> None:
    ran = run("compile", *words, "--output", tmp_path / "b")
    assert ran.code == 2 and said in ran.err and ran.out == ""
    assert not list(tmp_path.iterdir())


def test_compile_replaces_a_bundle_and_nothing_else(run: Run, tmp_path: Path) -> None:
    words = ["compile", "--source", "mlir", "--op", "gelu", "--dtype", "f32", "--no-targets", "--output"]
    (tmp_path / "file").write_text("precious")
    ran = run(*words, tmp_path / "file")
    assert ran.code == 2 and "not overwritten" in ran.err
    ran = run(*words, tmp_path / "file" / "below" / "bundle")
    assert ran.code == 2 and f"below cannot be created: {tmp_path / 'file'} is not a folder" in ran.err
    assert (tmp_path / "file").read_text() == "precious"
    assert not (tmp_path / "cache").exists()  # refused before anything is compiled


def test_a_cache_that_cannot_be_used(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "file"))
    ran = run("compile", "--source", "mlir", "--op", "gelu", "--no-targets", "--output", tmp_path / "b")
    assert ran.code == 4 and "TILESTACK_CACHE_DIR" in ran.err


def test_a_cell_that_fails_is_shown_and_no_bundle_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolchain.compiling import pipeline
    from toolchain.errors import SourceError

    def outcome(entries: list[object], *_: object, **__: object) -> pipeline.Outcome:
        failures = [pipeline.Failure(f"cell {i}", SourceError(f"k.mlir:{i}:1: no")) for i in range(len(entries))]
        return pipeline.Outcome([], failures, 0, 0)

    monkeypatch.setattr(pipeline, "compile_entries", outcome)
    ran = run("compile", "--source", "mlir", "--op", "gelu", "--dtype", "f32", "--output", tmp_path / "b")
    assert ran.code == 3 and ran.out == ""
    assert "failed: cell 0\nk.mlir:0:1: no\n" in ran.err and "did not compile" in ran.err
    assert not (tmp_path / "b").exists()


def test_a_part_does_not_replace_a_bundle_of_more(run: Run, tmp_path: Path) -> None:
    words = ["compile", "--source", "mlir", "--dtype", "f32", "--no-targets", "--output", tmp_path / "b"]
    assert run(*words, "--op", "gelu", "--op", "softmax").code == 0
    ran = run(*words, "--op", "gelu")
    assert ran.code == 2 and ran.out == "" and "(mlir/softmax): they would be lost\n  next: write to another" in ran.err
    assert {entry.spec.op for entry in Bundle.load(tmp_path / "b").entries} == {"gelu", "softmax"}
    assert run(*words, "--op", "gelu", "--op", "softmax", "--op", "kv_append").code == 0  # more than was there
    assert run(*words, "--op", "gelu", "--force").code == 0
    assert {entry.spec.op for entry in Bundle.load(tmp_path / "b").entries} == {"gelu"}
    (tmp_path / "b" / "manifest.json").write_text("{")
    assert run(*words, "--op", "softmax").code == 0  # nothing is lost that could be used


def test_an_output_that_cannot_be_made_is_named_as_it_was_given(run: Run, bundle: Path, tmp_path: Path) -> None:
    packed = tmp_path / "b.tar.xz"
    assert run("pack", bundle, "-o", packed).code == 0
    compiles = ["compile", "--source", "mlir", "--op", "gelu", "--dtype", "f32", "--no-targets"]
    for words in (compiles, ["unpack", packed]):
        ran = run(*words, "--output", "/proc/bundle")
        assert ran.code == 2 and "error: /proc/bundle cannot be written: No such file or directory\n" in ran.err


def test_a_compile_ends_with_the_code_of_what_failed_and_names_a_mistake_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolchain.compiling import pipeline
    from toolchain.errors import BytecodeError, SourceError, TilestackError, ToolchainError

    def ends(*errors: TilestackError) -> tuple[int, str]:
        failures = [pipeline.Failure(f"cell {i}", error) for i, error in enumerate(errors)]
        monkeypatch.setattr(pipeline, "compile_entries", lambda *_, **__: pipeline.Outcome([], failures, 0, 0))
        ran = run("compile", "--op", "gelu", "--dtype", "f32", "--no-targets", "--output", tmp_path / "b")
        return ran.code, ran.err

    assert ends(SourceError("k.mlir:1:1: no"), ToolchainError("no tool"))[0] == 3
    assert ends(BytecodeError("byte 7"))[0] == 3
    code, said = ends(*[ToolchainError("no tool")] * 3, ToolchainError("none"))
    assert code == 4 and "failed: cell 0 and 2 more\nno tool\n\nfailed: cell 3\nnone\n\n" in said


def test_inspect_says_what_is_missing(run: Run, bundle: Path, tmp_path: Path) -> None:
    ran = run("inspect", bundle)
    assert ran.code == 2 and "bytecode only" in ran.err
    assert run("inspect", tmp_path / "missing.cubin").code == 2
    assert run("inspect", tmp_path).code == 5


def test_matrix_run_and_report(run: Run, bundle: Path, tmp_path: Path) -> None:
    words = ["matrix", "run", "--bundle", bundle, "--executor", "cpu", "--op", "gelu", "--dtype", "f32"]
    ran = run(*words, "--report", tmp_path / "report")
    assert ran.code == 0 and ran.err == ""
    lines = ran.out.splitlines()
    assert "running on the CPU interpreter" in lines[0] and "running on the CPU interpreter" in lines[-1]
    rows = json.loads((tmp_path / "report" / "results.json").read_text())["rows"]
    native = [row for row in rows if row["target"] == "native"]  # here, without the C++ tools or with them
    assert {(row["op"], row["cell"]) for row in native} == {("gelu", "gelu-mlir-f32-native")}
    rows = [row for row in rows if row not in native]
    assert {(row["op"], row["status"], row["executor"]) for row in rows} == {("gelu", "passed", "cpu interpreter")}
    assert " passed" in lines[-1]
    assert not any(line.startswith("passed") for line in lines)  # this is no terminal
    full = run(*words, "--report", tmp_path / "full", "--full")
    every = json.loads((tmp_path / "full" / "results.json").read_text())["rows"]
    assert full.code == 0
    assert {row["shape"] for row in rows} <= {row["shape"] for row in every}

    results, page, junit, markdown = (
        tmp_path / name for name in ("report/results.json", "again/a.html", "again/j.xml", "again/s.md")
    )
    again = run("report", results, results, "--output", page, "--junit", junit, "--markdown", markdown)
    assert again == (0, f"{page}\n{junit}\n{markdown}\n", "")
    assert all(path.read_text() for path in (page, junit, markdown))
    same = run("report", "--check", results, "--bundle", bundle)
    assert same.code == 0 and "has each of the 2 kernels" in same.out
    words = ("report", "--check", results)
    assert run(*words).code == 2
    for file in (bundle / "files").iterdir():
        file.write_bytes(b"another")
    other = run(*words, "--bundle", bundle)
    assert other.code == 5 and "2 of 2 kernels differ\n  next: compile commit " in other.err


def test_a_report_that_cannot_be_written_is_refused_before_the_run(run: Run, bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    words = ["matrix", "run", "--bundle", bundle, "--executor", "cpu", "--op", "gelu", "--report"]
    run(*words, tmp_path / "report")
    wrong = f"error: {tmp_path / 'file'} cannot be created: {tmp_path / 'file'} is not a folder\n"
    assert run(*words, tmp_path / "file") == (2, "", wrong)
    folder = run("report", tmp_path / "report/results.json", "--output", tmp_path)
    assert folder.code == 2 and f"{tmp_path} is a folder\n  next: name a file, such as" in folder.err


def test_what_the_bundle_lacks_is_said_once(run: Run, bundle: Path, tmp_path: Path) -> None:
    """The bundle only has gelu in f32."""
    words = ["matrix", "run", "--bundle", bundle, "--executor", "cpu", "--report", tmp_path / "report"]
    ran = run(*words)
    assert ran.code == 0, ran.out
    assert ran.out.count("the bundle has no entries of embedding, ") == 1
    assert "error" not in ran.out
    refused = run(*words, "--op", "gelu", "--dtype", "f16")
    assert refused.code == 5 and "has no entry in f16; it has f32\n  next: " in refused.err


def test_a_damaged_bundle_is_found(run: Run, bundle: Path, tmp_path: Path) -> None:
    files = sorted((bundle / "files").iterdir())  # an entry for aligned arrays, one for any
    for file in files:
        file.write_bytes(file.read_bytes()[:-1])
    ran = run("matrix", "run", "--bundle", bundle, "--executor", "cpu", "--op", "gelu", "--dtype", "f32",
              "--report", tmp_path / "report")  # fmt: skip
    assert ran.code == 9 and "not green" in ran.err and all(f"{file} is damaged" in ran.out for file in files)
    assert "error: gelu-mlir-f32-cpu" in ran.out
    assert (tmp_path / "report" / "junit.xml").exists()
    (bundle / "manifest.json").write_text("{")
    ran = run("matrix", "run", "--bundle", bundle)
    assert ran.code == 5 and "manifest.json is damaged" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--op", "nope"], "no op nope\n  next: one of embedding"),
        (["--dtype", "nope"], "no dtype nope"),
        (["--source", "py"], "no source in this bundle py\n  next: one of mlir"),
        (["--executor", "nope"], "no executor is called 'nope'"),
    ],
)
def test_matrix_run_refuses_what_is_not_there(run: Run, bundle: Path, words: list[str], said: str) -> None:
    ran = run(
        "matrix", "run", "--bundle", bundle, *(["--executor", "cpu"] if "--executor" not in words else []), *words
    )
    assert ran.code == 2 and said in ran.err


def test_no_bundle(run: Run, tmp_path: Path) -> None:
    for words in (["matrix", "run"], ["generate", "--executor", "cpu"]):
        ran = run(*words, "--bundle", tmp_path)
        assert ran.code == 5 and f"no bundle in {tmp_path}" in ran.err and "tilestack compile" in ran.err


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": 2}', '{"format": 1, "environment": {}, "rows": [{}]}'])
def test_results_that_are_none(run: Run, tmp_path: Path, content: str) -> None:
    path = tmp_path / "results.json"
    assert "no such file" in run("report", path).err
    path.write_text(content)
    ran = run("report", path)
    assert ran.code == 2 and str(path) in ran.err
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([""], "the prompt is empty"),
        (["\udcff"], r"the text is not valid UTF-8: '\udcff'"),
        (["--dtype", "f8"], "invalid choice: 'f8'"),
        (["--max-new-tokens", "-1"], "max_new_tokens is -1"),
        (["--temperature", "nan"], "temperature is nan"),
        (["--top-k", "0"], "top_k is 0"),
        (["--top-p", "1.5"], "top_p is 1.5"),
        (["--stop", ""], "a stop string is empty"),
        (["--repetition-penalty", "0"], "repetition_penalty is 0.0"),
        (["x" * 256], "256 tokens and one more is more than the context of 256"),
        (["--max-new-tokens", "253"], "4 tokens and 253 new ones are more than the context of 256"),
        (["--file", "/no/such/file"], "/no/such/file cannot be read: No such file"),
        (["-", "--file", "-"], "standard input can be read once"),
        (["--interactive", "Once"], "--interactive reads the prompts line by line"),
        (["--checkpoint", "/no/such/folder"], "/no/such/folder"),
        (["--checkpoint", "pyproject.toml"], "pyproject.toml is not a folder\n"),
        (["--checkpoint", ""], "config.json cannot be read"),
        (["--executor", "nope"], "no executor is called 'nope'"),
    ],
)
def test_generate_refuses_before_any_launch(run: Run, bundle: Path, words: list[str], said: str) -> None:
    ran = run("generate", "--executor", "cpu", "--bundle", bundle, *words)
    assert ran.code == 2 and said in ran.err


def test_an_error_behind_a_text_begins_a_line(run: Run, bundle: Path) -> None:
    ran = run("generate", "Once", "--executor", "cpu", "--bundle", bundle)  # the bundle has gelu alone
    assert (ran.code, ran.out) == (5, "Once\n") and ran.err.startswith("error: ")


def test_generate_refuses_a_text_before_it_looks_for_kernels(run: Run, tmp_path: Path) -> None:
    """Compiling them takes minutes."""
    ran = run("generate", "", "--executor", "cpu", "--bundle", tmp_path)
    assert ran.code == 2 and "the prompt is empty" in ran.err


def test_generate_continues_a_text_alike_each_time(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # there is no build/bundle here: kernels are compiled for the run
    words = ["generate", "Once", "--executor", "cpu", "--max-new-tokens", "4", "--temperature", "0"]
    first = run(*words)
    assert first.code == 0 and first.out.startswith("Once") and len(first.out) > len("Once\n")
    assert "cpu interpreter, source fastest, bf16 (all: mlir)" in first.err and "tokens/s" in first.err
    assert run(*words).out == first.out
    stopped = run(*words, "--stop", first.out[4:7])  # three tokens
    assert stopped.out == "Once\n"
    assert not (tmp_path / "build").exists()


def test_doctor(run: Run) -> None:
    ran = run("doctor")
    assert ran.code in (0, 4) and "python" in ran.out and "toolchain" in ran.out


def test_several_sources_are_compiled_together() -> None:
    words = ["compile", "--source", "py", "--source", "mlir", "--op", "gelu", "--dtype", "f32"]
    chosen = chosen_entries(parser().parse_args(words))
    assert {spec.source for _, spec in chosen} == {"mlir", "py"}
