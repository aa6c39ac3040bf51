"""Every example of every --help runs, in the order of the help, or stands here with the reason why it does not."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilestack.__main__ import main, parser
from toolchain.cute.compile import to_ptx
from toolchain.knobs import ROOT
from toolchain.setup import packaging
from tune import fastest

pytestmark = pytest.mark.needs("toolchain")

REVERSE = """gpu.module @m {
  llvm.func @reverse(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %a = cute.static : !cute.layout<"(6,8):(8,1)">
    %n = cute.size(%a) : (!cute.layout<"(6,8):(8,1)">) -> !cute.int_tuple<"48">
    %r = cute.get_scalars (%n) : !cute.int_tuple<"48">
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i = arith.subi %r, %t : i32
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %q = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    llvm.store %v, %q : f32, !llvm.ptr<1>
    llvm.return
  }
}"""
# Enough for the examples that read a bundle: what the help names, and what one op needs for a conformance run: its
# entries for any size. Two examples compile all of it again.
SOME = r"^mlir/(linear_128x128x64_bf16|gelu_1024_f32|attention_D\d+_any_bf16)$"
NOT_RUN = {
    "compiles for minutes; tests/unit/tilestack/test_commands.py compiles less": (
        "tilestack compile", "tilestack compile --full", "tilestack compile --target sm_90",
        "tilestack compile --target sm_90 --toolkit 13.4.92",
        "tilestack compile --target sm_90 --target sm_120", "tilestack compile --no-targets",
        "tilestack compile --source mlir --op linear --dtype bf16 --output /tmp/linear",
        'tilestack compile --entries "py/gelu|f32$" --output /tmp/some',
    ),
    "needs all kernels of a model; tests/unit/tilestack/test_commands.py generates less": (
        'tilestack generate "Once"', 'tilestack generate "In the beginning" --temperature 0 --max-new-tokens 60',
        'tilestack generate "Once" "In the beginning" --stop "." --repetition-penalty 1.2',
        "tilestack generate --file story.txt", "tilestack generate --interactive",
        "tilestack generate --prompts questions.txt",
    ),
    "runs every cell of a bundle": ("tilestack matrix run --bundle build/bundle", "tilestack matrix run --every-gpu"),
    "needs more kernels than these; tests/unit/tilestack/cli/test_matrix.py filters": (
        'tilestack matrix run -k "layernorm and not (f32 or f16)"',
        'tilestack matrix run --op linear --shape "M<=64 K=768" --shape misaligned',
        "tilestack matrix run --executor cpu -n 4 -x", "tilestack matrix run --last-failed",
    ),
    "reads standard input; tests/unit/tilestack/test_streams.py pipes": ("tilestack fmt - < my_kernel.mlir",),
    "needs arrays and kernels of its own; tests/unit/tilestack/cli/test_cute_run.py has some": (
        "tilestack cute-run transpose.mlir --grid 2,3 --threads 32 --arg f32:64x96 --arg zeros:f32:96x64 --arg 64",
        "tilestack cute-run kernel.mlir --arg bf16:x.npy --arg zeros:f32:64 --save 1=out.npy",
    ),
    "writes to the home folder; tests/unit/tilestack/cli/test_completion.py takes another": (
        "tilestack completion bash -o ~/.local/share/bash-completion/completions/tilestack",
        "tilestack completion zsh -o ~/.zsh/completions/_tilestack",
        "tilestack completion fish -o ~/.config/fish/completions/tilestack.fish",
    ),
    "makes a container; tests/unit/ci/test_reproduce.py has the steps": (
        "tilestack reproduce h200/results.json --machine",
    ),
    "downloads a model; tests/unit/tilestack/cli/test_generate.py has a small one": (
        'tilestack generate "Once" --model gpt2-xl --devices 2',
        'tilestack generate "Once" --model gpt2-xl --devices 2 --processes',
        'tilestack generate --model smollm2 --chat "What is a GPU?"', "tilestack generate --model smollm2 --chat",
    ),
    "needs a model's weights; tests/unit/tilestack/cli/test_quantize.py makes small ones": (
        "tilestack quantize ~/gpt2 --output ~/gpt2-f8", "tilestack quantize ~/gpt2 --to i8 --output ~/gpt2-i8",
        "tilestack quantize ~/gpt2 --output ~/gpt2-f8 --compare book.txt",
        "tilestack quantize smollm2 --to i8-weights --output ~/smollm2-i8",
        "tilestack quantize ~/gpt2 --to i8 --logits --output ~/gpt2-i8",
        'tilestack generate "Once" --model ~/gpt2-f8',
    ),
    "needs a file with errors that are expected; tests/unit/tilestack/cli/test_cute_opt.py has some": (
        "tilestack cute-opt errors.mlir -split-input-file -verify-diagnostics",
    ),
    "needs a cuTile program; tests/unit/tilestack/cli/test_run.py has some": (
        "tilestack run script.py", "tilestack run train.py --steps 3",
        "tilestack run -m pytest tests/test_kernels.py -q", "tilestack run --target sm_90 --padding strict bench.py",
    ),
    "needs somebody's own kernels; tests/unit/tilestack/own/ has some": (
        "tilestack check", "tilestack check kernels/matrix.toml --op axpy --executor cpu --report build/report",
        "tilestack init kernels --from someone/tilestack@v1.2.3", "tilestack check --recording build/recording",
        "tilestack record --target sm_90", "tilestack record --target sm_90 --base origin/main --before build/before",
        "tilestack time build/recording", "tilestack time build/recording --against base=build/before --case axpy",
        "tilestack gate --recording build/recording --base build/before",
        "tilestack gate --recording build/recording --base build/before --case axpy --all-cells",
    ),
    "writes the tables of the checkout; tests/compile/tune/test_predict.py has its own": (
        "tilestack tune predict --target sm_80",
    ),
    "exports all tuned kernels; tests/compile/toolchain/compiling/test_tuned.py does": ("tilestack tune --check",),
    "needs a GPU": (
        "python3 -m tune measure build/tune",
        "tilestack tune linear --target sm_90 --dtype bf16", "tilestack tune llama --target sm_90",
        "tilestack tune model --target sm_90 --phase compile --output build/tune",
        "tilestack tune model --target sm_90 --phase apply --output build/tune",
        'tilestack tune linear --target sm_90 --shapes "M=8192 K=768 N=2304" --classes "^large$"',
        'tilestack generate "Hello" --checkpoint ~/gpt2 --executor cuda --dtype bf16',
    ),
    "needs a commit's tag; tests/unit/ci/diff/test_commits.py makes a repository": (
        "tilestack bisect v0.1 HEAD --commits --source mlir --entry gelu_any_f32 --target sm_90",
    ),
    "needs a remote": (
        "tilestack matrix plan --base origin/main",
        "tilestack matrix plan --event pull_request --base origin/main",
    ),
    "needs results of two GPUs; tests/unit/ci/report has some": (
        "tilestack report h100.json h200.json bench-h200.json --bundle build/bundle --output report.html",
        "tilestack report --check h200.json --bundle build/bundle",
    ),
    "needs bundles that differ; tests/unit/ci/diff/test_bisect.py has some": (
        "tilestack bisect build/before build/bundle",
        "tilestack bisect build/before build/bundle --source mlir --entry gelu_any_f32 --target sm_90",
        'tilestack bisect A B --check "python3 measure.py {base} {bundle}"',
    ),
    "needs results with a failure; tests/compile/ci/test_reproduce.py has some": (
        "tilestack reproduce build/report/results.json",
    ),
    "needs a shared cache": ("tilestack cache verify --shared",),
    "needs a clone of LLVM": ("tilestack stack check 0123abc --llvm-clone ~/llvm-project",),
}  # fmt: skip


def helps(top: argparse.ArgumentParser) -> Iterator[str]:
    yield top.format_help()
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from helps(sub)


def examples() -> list[str]:
    lines = [line.strip() for text in helps(parser()) for line in text.splitlines()]
    found = [re.split(r" {3,}", line)[0] for line in lines if line.startswith(("tilestack ", "python3 -m "))]
    return list(dict.fromkeys(found))


def test_what_is_not_run_is_an_example() -> None:
    listed = [line for lines in NOT_RUN.values() for line in lines]
    assert set(listed) <= set(examples()) and len(listed) == len(set(listed))


def words(line: str) -> list[str]:
    """As a shell splits them, with the names that a pattern stands for."""
    _, *rest = shlex.split(line)
    return [name for word in rest for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]


@pytest.mark.long("runs thirty commands in 40 s; tests/unit/tilestack/test_main.py parses all examples")
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    left_out = {line for lines in NOT_RUN.values() for line in lines}
    (tmp_path / "dist").mkdir()
    monkeypatch.chdir(ROOT)
    made = packaging.build_wheel(str(tmp_path / "dist"))
    (tmp_path / "dist" / made).rename(tmp_path / "dist" / "tilestack.whl")
    with tarfile.open(tmp_path / "image.tar", "w") as image:
        image.add(ROOT / "LICENSE", "LICENSE")
    shutil.copytree(ROOT / "kernels_mlir", tmp_path / "kernels_mlir")  # a copy, since `fmt` writes
    (tmp_path / "layouts.mlir").write_text("func.func private @f(!cute.layout<(64,128),(1,64)>) -> ()")
    (tmp_path / "kernel.mlir").write_text(REVERSE)
    (tmp_path / "kernel.ptx").write_text(to_ptx(REVERSE, "sm_90a"))
    (tmp_path / "my_kernel.mlir").write_text((ROOT / "kernels_mlir/gelu.mlir").read_text())
    few = fastest.entries("sm_90")[::20]  # to compile all takes minutes
    monkeypatch.setattr(fastest, "entries", {"sm_90": few}.__getitem__)
    monkeypatch.chdir(tmp_path)
    for folder in ("build/before", "build/bundle"):
        assert main(["compile", "--target", "sm_90", "--entries", SOME, "--output", folder]) == 0
    for packed in ("old.tar.xz", "new.tar.xz"):
        assert main(["pack", "build/bundle", "-o", packed]) == 0
    failed = []
    for line in examples():
        if line in left_out:
            continue
        capsys.readouterr()
        with monkeypatch.context() as own:
            if line.startswith("tilestack cache "):  # `clear` would empty the machine's, which other tests need
                own.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
            if main(words(line)) != 0:
                failed.append(f"{line}\n{capsys.readouterr().err}")
    assert not failed, "\n".join(failed)
