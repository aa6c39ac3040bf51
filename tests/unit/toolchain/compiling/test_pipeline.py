"""The pipeline up to bytecode, on a kernel source made for the test: no tool runs."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolchain.caching.cache import Cache
from toolchain.caching.counts import Counts
from toolchain.caching.shared import Shared, new_keys
from toolchain.compiling import pipeline, stages
from toolchain.compiling.pipeline import compile_entries
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.contract.sources import load_source
from toolchain.contract.targets import BYTECODE, targets
from toolchain.errors import SourceError, ToolchainError, ToolFailed, UsageError

SOURCE = """
import os
from pathlib import Path
from toolchain.contract.artifact import tile_ir
from toolchain.errors import SourceError

class Source:
    name = "made"
    def entries(self):
        return []
    def fingerprint(self, spec):
        return spec.symbol + Path(__file__).with_name("revision").read_text()
    def artifact(self, spec, version="13.3"):
        if "bad" in spec.symbol:
            raise SourceError(f"k.mlir:1:2: {spec.symbol}", hint="mend it")
        if "edited" in spec.symbol:  # as if by somebody else, meanwhile
            Path(__file__).with_name("revision").write_text("2")
        if "bug" in spec.symbol:
            raise ZeroDivisionError("in the source")
        if "dies" in spec.symbol:
            os._exit(9)
        with Path(__file__).with_name("made").open("a") as log:
            log.write(f"{spec.symbol}\\n")
        return tile_ir(f"{spec.symbol} {version}".encode(), version)

SOURCE = Source()
"""


def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of tileiras a function that says what it was given."""
    monkeypatch.setattr(stages, "tool", lambda _: SimpleNamespace(fingerprint="as if"))
    as_if = stages.Stage(("tileiras",), lambda code, target: code + b" for " + target.encode())
    monkeypatch.setattr(stages, "STAGES", {"tile-ir": as_if})


def spec(symbol: str) -> EntrySpec:
    return EntrySpec(symbol, "gelu", "made", "f32", grid=("M", "1", "1"))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a kernel source `made_for_<test>`; the file `made` in it lists what was exported."""
    folder = tmp_path / f"made_for_{abs(hash(tmp_path))}"
    folder.mkdir()
    (folder / "__init__.py").write_text(SOURCE)
    (folder / "revision").write_text("1")
    (folder / "made").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    load_source.cache_clear()
    sys.modules.pop(folder.name, None)


Compile = Callable[..., pipeline.Outcome]


@pytest.fixture
def compile_(package: Path, tmp_path: Path) -> Compile:
    def run(*symbols: str, version: str = "13.3", **options: object) -> pipeline.Outcome:
        entries = [(package.name, spec(symbol)) for symbol in symbols]
        return compile_entries(entries, [], Cache(tmp_path / "cache"), jobs=2, version=version, **options)

    return run


def test_bytecode_comes_in_the_order_of_the_entries(compile_: Compile) -> None:
    outcome = compile_("c", "a", "b")
    assert [c.spec.symbol for c in outcome.compiled] == ["c", "a", "b"]
    assert [(c.artifact.payload, c.artifact.form.version, c.cubins) for c in outcome.compiled] == [
        (f"{s} 13.3".encode(), "13.3", {}) for s in "cab"
    ]
    assert (outcome.made, outcome.cached, outcome.failures) == (3, 0, [])


def test_a_second_compile_exports_nothing_and_starts_no_process(
    compile_: Compile, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compile_("a", "b")
    monkeypatch.setattr(pipeline, "ProcessPoolExecutor", lambda *_, **__: pytest.fail("a process was started"))
    again = compile_("a", "b")
    assert (again.made, again.cached) == (0, 2)
    assert again.compiled == first.compiled
    assert sorted((package / "made").read_text().split()) == ["a", "b"]


def test_code_that_is_not_of_the_fingerprint_is_not_kept(compile_: Compile, package: Path) -> None:
    (failure,) = compile_("edited").failures
    assert isinstance(failure.error, SourceError)
    assert "edited: files changed during the compile" in str(failure.error)
    (package / "revision").write_text("1")  # as a checkout of the commit before does
    assert compile_("edited").cached == 0


def test_another_fingerprint_or_version_is_compiled_again(compile_: Compile, package: Path) -> None:
    compile_("a")
    assert compile_("a", version="13.2").compiled[0].artifact.payload == b"a 13.2"
    (package / "revision").write_text("2")
    assert compile_("a").made == 1
    assert compile_("a").cached == 1


def test_a_kernel_is_checked_again_when_its_op_may_read_other_arrays_early(
    compile_: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_("a")
    changed = replace(ops()["gelu"], pdl_reads=("x",))
    monkeypatch.setattr(EntrySpec, "op_spec", property(lambda _: changed))
    assert compile_("a").made == 1


def test_a_failed_cell_does_not_stop_the_others(compile_: Compile) -> None:
    outcome = compile_("a", "bad1", "b", "bad2")
    assert [c.spec.symbol for c in outcome.compiled] == ["a", "b"]
    assert sorted(f.cell for f in outcome.failures) == [
        f"gelu-made-f32-export ({s})" for s in ("bad1", "bad2")
    ]  # fmt: skip
    for failure in outcome.failures:
        assert type(failure.error) is SourceError
        assert str(failure.error).startswith("k.mlir:1:2: bad") and failure.error.hint == "mend it"
    assert compile_("bad1").failures, "a failure is not cached"


def test_a_dead_process_is_an_error_of_its_cell(compile_: Compile) -> None:
    outcome = compile_("dies")
    (failure,) = outcome.failures
    assert isinstance(failure.error, ToolchainError) and "died" in str(failure.error)


def test_a_bug_in_a_source_is_not_hidden(compile_: Compile) -> None:
    with pytest.raises(ZeroDivisionError, match="in the source") as caught:
        compile_("bug")
    assert "while compiling gelu-made-f32-export (bug)" in caught.value.__notes__


def test_progress_counts_every_cell_once(compile_: Compile) -> None:
    compile_("a")
    told: list[tuple[int, int]] = []
    compile_("a", "b", "bad", progress=lambda done, total, _: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_damaged_entry_of_the_cache_is_compiled_again(compile_: Compile, tmp_path: Path) -> None:
    first = compile_("a")
    (path,) = (p for p in (tmp_path / "cache").rglob("*") if p.is_file())
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    again = compile_("a")
    assert (again.made, again.compiled) == (1, first.compiled)


@pytest.mark.parametrize(
    ("module", "message"), [("no_such_kernels", "there is no such package"), ("json", "it has no SOURCE")]
)
def test_what_is_no_source(module: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_source(module)


def test_an_import_error_inside_a_source_is_not_taken_for_a_missing_source(package: Path) -> None:
    (package / "__init__.py").write_text("import no_such_dependency")
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        load_source(package.name)


def test_a_target_that_needs_later_bytecode_is_refused_first() -> None:
    pipeline.check_targets([targets()["sm_90"]], "13.3")
    pipeline.check_targets([targets()["sm_100"]], "13.1")
    with pytest.raises(UsageError, match=r"sm_90 needs bytecode 13\.3.*not 13\.1"):
        pipeline.check_targets([targets()["sm_100"], targets()["sm_90"]], "13.1")
    for version in ("abc", "", "13", "99.1"):
        with pytest.raises(UsageError, match="bytecode version"):
            pipeline.check_targets([], version)


def test_an_entry_for_some_targets_is_assembled_for_these(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_tools(monkeypatch)
    chosen = [targets()[name] for name in ("sm_90", "sm_80")]
    entries = [
        replace(spec("tuned"), targets=("sm_90", "sm_120")),
        replace(spec("none"), targets=("sm_100",)),
        spec("a"),
    ]
    told: list[tuple[int, int]] = []
    outcome = compile_entries(
        [(package.name, each) for each in entries], chosen, Cache(tmp_path / "cache"), jobs=2,
        progress=lambda done, total, _: told.append((done, total)),
    )  # fmt: skip
    assert [(c.spec.symbol, dict(c.cubins)) for c in outcome.compiled] == [
        ("tuned", {"sm_90": f"tuned {BYTECODE} for sm_90".encode()}),
        ("none", {}),  # its bytecode is there for the interpreter
        ("a", {t: f"a {BYTECODE} for {t}".encode() for t in ("sm_90", "sm_80")}),
    ]
    assert (outcome.made, outcome.failures, told[-1]) == (6, [], (6, 6))


def test_one_export_serves_all_targets_and_the_first_target_comes_first(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_tools(monkeypatch)
    chosen = [targets()[name] for name in ("sm_90", "sm_80", "sm_120")]
    specs = [replace(spec("other"), targets=("sm_80",)), spec("a"), spec("b")]
    told: list[str] = []
    outcome = compile_entries(
        [(package.name, each) for each in specs], chosen, Cache(tmp_path / "cache"), jobs=1,
        progress=lambda _, __, what: told.append(what),
    )  # fmt: skip
    assert sorted((package / "made").read_text().split()) == ["a", "b", "other"]
    assert (outcome.made, outcome.failures) == (3 + 1 + 3 + 3, [])
    last_own = max(i for i, what in enumerate(told) if "sm_90" in what)
    assert all("sm_80" not in what and "sm_120" not in what for what in told[:last_own])
    assert told.index("gelu-made-f32-export (other)") > last_own, "an entry of another target waits"


def test_only_what_is_wanted_is_assembled(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_tools(monkeypatch)
    chosen = [targets()[name] for name in ("sm_90", "sm_80")]
    outcome = compile_entries(
        [(package.name, spec("a")), (package.name, spec("b"))], chosen, Cache(tmp_path / "cache"), jobs=2,
        wanted=lambda spec, target: (spec.symbol, target.name) != ("b", "sm_80"),
    )  # fmt: skip
    assert [list(c.cubins) for c in outcome.compiled] == [["sm_90", "sm_80"], ["sm_90"]]


def test_a_failed_tool_passes_between_processes_whole() -> None:
    error = ToolFailed(["/a b/tileiras", "-x"], 3, "said this\n", version="tileiras 13.5", hint="do that")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) and "'/a b/tileiras' -x" in str(copy)
    assert (copy.command, copy.returncode, copy.stderr, copy.hint) == (error.command, 3, "said this\n", "do that")


def test_a_compile_reads_and_writes_the_shared_cache(package: Path, tmp_path: Path) -> None:
    signing, public = new_keys()
    url = f"file://{tmp_path}/shared"
    entries = [(package.name, spec(symbol)) for symbol in "abc"]

    def run(folder: str, chosen: list[tuple[str, EntrySpec]], signing: str | None) -> tuple[pipeline.Outcome, Counts]:
        cache = Cache(tmp_path / folder, Shared.open(url, [public], signing))
        return compile_entries(chosen, [], cache, jobs=2, version="13.3"), cache.counts

    _, counts = run("first", entries[:2], signing)
    assert (counts.misses, counts.shared_hits) == (2, 0) and counts.sent > 0
    outcome, counts = run("second", entries, None)
    assert (outcome.made, outcome.cached) == (1, 2)
    assert (counts.misses, counts.shared_hits, counts.hits, counts.sent) == (1, 2, 0, 0)
    assert [c.artifact.payload for c in outcome.compiled] == [b"a 13.3", b"b 13.3", b"c 13.3"]
    outcome, counts = run("second", entries, None)
    assert (counts.misses, counts.shared_hits, counts.hits) == (0, 0, 3) and counts.saved > 0
