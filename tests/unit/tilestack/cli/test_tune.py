"""The parts of `tune` that need neither the compiler nor a GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import tune.command
from kernels_mlir import SOURCE
from tilestack.__main__ import main
from tilestack.cli import tune as tuning
from toolchain.bundles.bundle import Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entries import Tables
from toolchain.contract.entry import EntrySpec
from toolchain.contract.targets import BYTECODE, targets
from toolchain.knobs import ENTRIES, ROOT
from toolchain.pinned.pins import pins
from tune.candidates import Faults
from tune.catalogue import Candidate, Catalogue, Contest
from tune.measured import OWN, EntryMeasurement, Launched, Measured
from tune.worker import Machine, Outcome

from ..conftest import Run

DIMS = {"M": 8192, "N": 3072}
BLOCKED = ("xdsl", "rich", "cuda", "safetensors", "tokenizers", "huggingface_hub", "jinja2", "pytest")


def spec(symbol: str = "gelu_512_2_bf16") -> EntrySpec:
    return EntrySpec(
        symbol, "gelu", "mlir", "bf16", {"R": 2, "BN": 512}, grid=("cdiv(N, BN)", "M", "1"),
        hints={"sm_90": {"occupancy": 2}}, targets=("sm_90",),
    )  # fmt: skip


@pytest.fixture
def searched(tmp_path: Path) -> Path:
    """A folder in which gelu was compiled and measured."""
    folder = tmp_path / "tune"
    contest = Contest("gelu", "bf16", "large", ("N > 512", "M > 64"), (DIMS,))
    compiler = pins().tools["tileiras"].expected()
    candidates = (
        Candidate("gelu", ("large",), spec(), "compiled"),
        Candidate("gelu", ("large",), spec("gelu_a_bf16"), "failed", "k.mlir: gelu_a_bf16: no\nmore"),
        Candidate("gelu", ("large",), spec("gelu_b_bf16"), "failed", "k.mlir: gelu_b_bf16: no\nother"),
        Candidate("gelu", ("large",), spec("gelu_c_bf16"), "failed", "tileiras /tmp/3\n  exited 5\nerror: not that"),
    )
    catalogue = Catalogue("sm_90", {"tileiras": compiler}, (contest,), candidates)
    catalogue.save(folder)
    made = tile_ir(SOURCE.bytecode(spec()), BYTECODE)
    write(folder / "bundle", [Compiled(spec(), made, {"sm_90": b"cubin"})], {})
    write(folder / "own", [Compiled(spec("gelu_own_bf16"), tile_ir(b"bytecode", "13.3"), {"sm_90": b"own cubin"})], {})
    launched = Launched.load(folder, catalogue)
    measured = Measured(folder / "measured.json", "sm_90", Machine("cuda", "H200", "sm_90", "580.1"), "2026-01-02")
    for symbol, us in ((OWN, 9.0), (spec().symbol, 4.0)):
        file = launched.file("mlir", "gelu", "bf16", symbol)
        measured.add(EntryMeasurement.of("mlir", contest, symbol, DIMS, file, Outcome("ok", us=us)))
    return folder


@pytest.fixture
def kept(searched: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the rows that were kept from that search; faults that a compiler would find are ignored."""
    monkeypatch.setattr(Faults, "__call__", lambda *_: "")
    words = [
        "tune",
        "gelu",
        "--target",
        "sm_90",
        "--phase",
        "apply",
        "--output",
        searched,
        "--tuned",
        tmp_path / "kept",
    ]
    assert run(*words).code == 0
    return tmp_path / "kept"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name what to tune and the GPU target"),
        (["gelu"], "the GPU target"),
        (["gelu", "--target", "sm_1"], "no target sm_1\n  next: one of sm_80"),
        (["gelu", "--target", "all"], "--target all: a search is for one GPU\n  next: tilestack tune"),
        (["nope", "--target", "sm_90"], "no search space for nope\n  next: one of linear"),
        (["gelu", "--target", "sm_90", "--dtype", "tf32"], "no search space of gelu has this dtype and class"),
        (["gelu", "--target", "sm_90", "--classes", "^none"], "no search space of gelu has this dtype and class"),
        (["gelu", "--target", "sm_90", "--classes", "("], "'(' is not a regular expression"),
        (["gelu", "--target", "sm_90", "--shapes", "M=8"], "no class takes M=8\n  next: dimensions of gelu: M N"),
        (["gelu", "--target", "sm_90", "--shapes", "8"], "'8' is no shape"),
        (["gelu", "--target", "sm_90", "--jobs", "0"], "--jobs 0"),
        (["gelu", "--target", "sm_90", "--timeout", "0"], "must be above 0"),
        (["gelu", "--target", "sm_90", "--stop-after", "soon"], "'soon' is not a number of seconds"),
        (["gelu", "--target", "sm_90", "--spaces", "/none.toml"], "/none.toml cannot be read"),
        (["gelu", "--target", "sm_90", "--phase", "measure"], "variants.json: no such file"),
        (["gelu", "--target", "sm_90", "--phase", "apply"], "variants.json: no such file"),
    ],
)
def test_tune_refuses_before_it_starts(run: Run, tmp_path: Path, words: list[str], said: str) -> None:
    ran = run("tune", *words, "--output", tmp_path / "out")
    assert ran.code == 2 and said in ran.err and not list(tmp_path.iterdir())


def test_the_words_are_listed_with_their_spaces(run: Run, tmp_path: Path) -> None:
    ran = run("tune", "--list")
    lines = ran.out.splitlines()
    assert ran.code == 0 and {"model", "llama", "eighths", "gelu"} <= set(lines)
    assert lines[lines.index("llama") + 1] == "  rms_linear_gemv: k576_m1"
    assert lines[lines.index("eighths") + 1] == "  linear_f8: m1024, m8192, vast"
    (tmp_path / "trial.toml").write_text("model = []\nspace = []\n")
    assert run("tune", "--list", "--spaces", tmp_path / "trial.toml").out == "model\n"


def test_the_phases_of_another_target_or_with_other_shapes(run: Run, searched: Path) -> None:
    words = ["tune", "gelu", "--output", searched, "--phase"]
    for phase in ("measure", "apply"):
        assert "holds variants for sm_90\n  next: --target sm_90" in run(*words, phase, "--target", "sm_80").err
    ran = run(*words, "measure", "--target", "sm_90", "--shapes", "M=1 N=3072")
    assert ran.code == 2 and "--shapes are chosen when variants are compiled" in ran.err
    ran = run("tune", "llama", *words[2:], "apply", "--target", "sm_90")
    assert ran.code == 2 and "nothing of llama was compiled for these classes" in ran.err
    ran = run(*words, "apply", "--target", "sm_90", "--classes", "none")
    assert ran.code == 2 and "there are: gelu bf16 large" in ran.err


def test_apply_keeps_the_winner(run: Run, searched: Path, kept: Path) -> None:
    (row,) = Tables(kept).tuned
    assert row.name == "gelu bf16 large for sm_90 (mlir)" and row.entries("mlir")[0].constants == {"R": 2, "BN": 512}
    words = ["tune", "gelu", "--target", "sm_90", "--phase", "apply", "--output", searched, "--tuned", kept]
    again = run(*words)
    assert again.out.splitlines() == [
        "gelu bf16 large (mlir), 1 variants: gelu_512_2_bf16 4 us, own 9",
        f"unchanged: {kept / 'sm_90.toml'}",
    ]
    assert "wrote" in run(*words, "--also-source", "py", "--also-dtype", "f16").out
    assert [row.name for row in Tables(kept).tuned] == ["gelu f16, bf16 large for sm_90 (mlir, py)"]


def test_trial_spaces_cost_no_other_class_its_row(run: Run, searched: Path, kept: Path, tmp_path: Path) -> None:
    path = kept / "sm_90.toml"
    path.write_text(path.read_text().replace("large", "of_a_trial"))
    words = ["tune", "gelu", "--target", "sm_90", "--phase", "apply", "--output", searched, "--tuned", kept]
    ran = run(*words, "--spaces", tmp_path / "none.toml")
    assert ran.code == 2 and "none.toml cannot be read" in ran.err
    (tmp_path / "trial.toml").write_text("model = []\nspace = []\n")
    assert run(*words, "--spaces", tmp_path / "trial.toml").code == 0
    assert [row.shape_class for row in Tables(kept).tuned] == ["large", "of_a_trial"]
    assert "gelu: no class of_a_trial any more: dropped" in run(*words).out
    assert [row.shape_class for row in Tables(kept).tuned] == ["large"]


def test_apply_keeps_nothing_that_was_compiled_anew_since(run: Run, searched: Path, tmp_path: Path) -> None:
    write(searched / "bundle", [Compiled(spec(), tile_ir(b"bytecode", "13.3"), {"sm_90": b"another cubin"})], {})
    words = ["tune", "gelu", "--target", "sm_90", "--phase", "apply", "--output", searched]
    ran = run(*words, "--tuned", tmp_path / "kept")
    assert "gelu bf16 large (mlir): left as it is, 1 measurements are missing" in ran.out
    assert Tables(tmp_path / "kept").tuned == ()


def test_check_lists_what_is_stale(run: Run, kept: Path) -> None:
    ran = run("tune", "--check", "--tuned", kept)
    assert (ran.code, ran.out) == (0, "0 of 1 tuned entries are stale\n")
    path = kept / "sm_90.toml"
    path.write_text(path.read_text().replace(pins().tools["tileiras"].expected(), "0" * 64))
    ran = run("tune", "--check", "--tuned", kept)
    assert ran.code == 1
    assert ran.out == "gelu bf16 large for sm_90 (mlir): tileiras has changed\n1 of 1 tuned entries are stale\n"


def test_check_counts_what_is_predicted_apart(run: Run, kept: Path) -> None:
    path = kept / "sm_90.toml"
    below = '[tuned.predicted]\ngpu = "a"\nrates = "b"\nspace = "gelu"\nus = { "M=8192 N=3072" = 4.0 }\n'
    path.write_text(path.read_text().partition("[tuned.measured]")[0] + below)
    ran = run("tune", "--check", "--tuned", kept)
    assert (ran.code, ran.out) == (
        0, "0 of 0 tuned entries are stale\n1 more, for sm_90, are predicted: nobody measured them\n"
    )  # fmt: skip


def test_predict_writes_a_table_and_has_no_phases(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def usages(*words: object) -> list[None]:
        assert words[1] == targets()["sm_80"]
        return [None for _ in cast("list[EntrySpec]", words[-1])]

    monkeypatch.setattr("tune.candidates.usages", usages)
    shutil.copy(ENTRIES / "portable.toml", tmp_path)
    ran = run("tune", "predict", "--target", "sm_80", "--tuned", tmp_path)
    assert ran.code == 0 and ran.out.endswith(f"wrote {tmp_path}/sm_80.toml: predicted, not measured\n")
    assert "linear f16, bf16 m256: the source's own entries stay" in ran.out, "nothing compiles"
    assert Tables(tmp_path).policies["sm_80"].sms == 108
    ran = run("tune", "predict", "--target", "sm_80", "--phase", "apply", "--tuned", tmp_path)
    assert ran.code == 2 and "tune predict has no phases" in ran.err
    ran = run("tune", "predict", "--target", "sm_87", "--tuned", tmp_path)
    assert ran.code == 2 and "the rates of no GPU of sm_87" in ran.err


@pytest.mark.parametrize("word", ["linear", "--target=sm_90", "--phase=apply"])
def test_check_is_of_all_that_is_kept(run: Run, kept: Path, word: str) -> None:
    ran = run("tune", word, "--check", "--tuned", kept)
    assert ran.code == 2 and "--check looks at all kept entries" in ran.err


def test_check_wants_a_folder(run: Run, tmp_path: Path) -> None:
    ran = run("tune", "--check", "--tuned", tmp_path / "typo")
    assert ran.code == 2 and f"{tmp_path}/typo: there is no such folder\n  next: --tuned" in ran.err


def test_a_compile_warns_once_of_what_is_stale(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kept / "sm_90.toml"
    path.write_text(path.read_text().replace(pins().tools["tileiras"].expected(), "0" * 64))
    monkeypatch.setattr(tuning, "committed", lambda: Tables(kept))
    (entry,) = Tables(kept).tuned[0].entries("mlir")

    def compiled(spec: EntrySpec) -> Compiled:
        return Compiled(spec, SOURCE.artifact(spec), {})

    def warned(entries: list[Compiled], target: str) -> str:
        tuning.warn_of_stale(entries, [targets()[target]])
        return capsys.readouterr().err

    own, made = compiled(spec("gelu_own_bf16")), compiled(entry)
    said = "warning: tuned with other tools or kernels, so perhaps not the fastest: gelu bf16 large for sm_90 (mlir)\n"
    assert warned([own, made], "sm_90") == said
    assert warned([own], "sm_90") == warned([made], "sm_80") == "", "it is not compiled"
    path.write_text(path.read_text().replace("0" * 64, pins().tools["tileiras"].expected()))
    assert warned([own, made], "sm_90") == ""
    assert warned([own, replace(made, artifact=tile_ir(b"other code", BYTECODE))], "sm_90") == said


def test_where_there_is_no_gpu_it_says_how_to_go_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "compile_", lambda *_: None)
    monkeypatch.setattr("toolchain.runtime.gpus", lambda: ())
    ran = run("tune", "gelu", "--target", "sm_90", "--output", tmp_path / "out")
    assert ran.code == 0
    assert f"python3 -m tune measure {tmp_path}/out" in ran.out and "--phase apply" in ran.out


@pytest.mark.parametrize("finished", [True, False])
def test_on_the_interpreter_a_search_is_tried_out(
    run: Run, searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: bool
) -> None:
    monkeypatch.setattr(tuning, "compile_", lambda *_: None)
    monkeypatch.setattr(tune.command, "measure", lambda *_: finished)
    monkeypatch.setattr("toolchain.runtime.gpus", lambda: ())
    words = ["tune", "gelu", "--target", "sm_90", "--output", searched, "--tuned", tmp_path / "kept"]
    ran = run(*words, "--executor", "cpu")
    assert (ran.code, "whose times are not applied" in ran.out) == ((0, True) if finished else (1, False))
    assert "no GPU" not in ran.out and not (tmp_path / "kept").exists()


def test_where_there_is_one_all_three_phases_run(
    run: Run, searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Path] = []

    def measure(folder: Path, args: Namespace, what: str, spaces: object, say: object) -> bool:
        assert (what, spaces, args.timeout) == ("gelu", (), 7.0) and callable(say)
        measured.append(folder)
        return True

    monkeypatch.setattr(tuning, "compile_", lambda *_: None)
    monkeypatch.setattr(tune.command, "measure", measure)
    monkeypatch.setattr("toolchain.runtime.gpus", lambda: (SimpleNamespace(target="sm_90"),))
    words = ["tune", "gelu", "--target", "sm_90", "--output", searched, "--tuned", tmp_path / "kept", "--timeout", "7"]
    ran = run(*words)
    assert (ran.code, measured) == (0, [searched]) and "wrote" in ran.out
    monkeypatch.setattr(tune.command, "measure", lambda *_: False)
    assert run(*words).code == 1, "not all is measured yet"


def test_failures_are_told_by_reason(searched: Path) -> None:
    assert tuning.failures(Catalogue.load(searched)) == {
        "k.mlir: it: no": ["mlir/gelu_a_bf16", "mlir/gelu_b_bf16"],
        "error: not that": ["mlir/gelu_c_bf16"],
    }


def test_measuring_needs_few_packages(tmp_path: Path) -> None:
    """A GPU machine has numpy, ml_dtypes and cuda-bindings."""
    code = f"""
import sys
for name in {BLOCKED!r}:
    sys.modules[name] = None
from tune import bench, measure, worker
from tune.__main__ import main
assert not {{name.partition(".")[0] for name in sys.modules}} & {{"tilestack", "kernels_py", "kernels_mlir"}}
sys.exit(main(["measure", {str(tmp_path)!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "variants.json: no such file" in done.stderr, done.stderr


def test_a_source_with_kernels_of_its_own_is_not_tuned(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["tune", "linear", "--target", "sm_90", "--source", "cute"])
    assert "choose from 'mlir', 'py', 'all'" in capsys.readouterr().err
