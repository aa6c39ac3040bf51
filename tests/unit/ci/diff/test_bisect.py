"""Which of two builds' parts made a difference, with tools whose output is known."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import ci.diff.bisect
from ci.diff.bisect import Answer, bisect
from toolchain.bundles.bundle import Bundle
from toolchain.caching.cache import Cache
from toolchain.compiling.cubin import Usage
from toolchain.contract.artifact import tile_ir
from toolchain.errors import ToolchainError, UsageError
from toolchain.pinned.toolkits import PARTS, Toolkit
from toolchain.pinned.tools import Tool

from .conftest import PLAIN, Make, other

CELL = "py/gelu_1024_f16 sm_90"
OLD, NEW = "1", "2"


def kit(version: str) -> Toolkit:
    return Toolkit({name: Tool(name, Path(name), version, version, version) for name in PARTS})


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler whose cubin names what it was made from. ptxas 2 refuses libnvvm 1."""

    class Stage:
        def __init__(self, find: Callable[[str], Tool]) -> None:
            self.versions = "".join(find(name).version for name in PARTS)
            self.fingerprint = self.versions

        def run(self, code: bytes, _: str) -> bytes:
            if self.versions.endswith("21"):
                raise ToolchainError("ptxas 2 refuses this")
            return code + self.versions.encode()

    def mixed(parts: dict[str, Toolkit]) -> Toolkit:
        return Toolkit({name: parts[name].parts[name] for name in PARTS})

    monkeypatch.setattr(ci.diff.bisect, "toolkit", kit)
    monkeypatch.setattr(ci.diff.bisect, "mixed", mixed)
    monkeypatch.setattr(ci.diff.bisect, "stages", lambda find: {"tile-ir": Stage(find)})


def two(
    bundle: Make, codes: Sequence[bytes] = (b"a", b"a"), versions: Sequence[str] = (OLD, NEW)
) -> tuple[Bundle, Bundle]:
    first, second = (
        bundle(
            f"bundle{at}", {"gelu_1024_f16": {"sm_90": code + 3 * version.encode()}},
            tools=dict.fromkeys(PARTS, version), code=code,
        )
        for at, (code, version) in enumerate(zip(codes, versions, strict=True))
    )  # fmt: skip
    return first, second


def fill(usages: dict[bytes, Usage], bad: Callable[[str], bool]) -> None:
    for code in "ab":
        for mixture in ("111", "112", "121", "122", "211", "212", "221", "222"):
            usages[f"{code}{mixture}".encode()] = other(spills=9) if bad(code + mixture) else PLAIN


def causes(answer: Answer) -> list[list[str]]:
    return answer.to_json()["causes"]


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        (lambda cubin: cubin[1] == "2", [["tileiras"]]),
        (lambda cubin: cubin[3] == "2", [["libnvvm"]]),
        (lambda cubin: cubin[2:] == "22", [["ptxas", "libnvvm"]]),
        (lambda cubin: "2" in (cubin[1], cubin[3]), [["tileiras"], ["libnvvm"]]),
    ],
)
def test_the_tool_is_found(
    bad: Callable[[str], bool], found: list[list[str]], bundle: Make, usages: dict[bytes, Usage], tmp_path: Path
) -> None:
    fill(usages, bad)
    answer = bisect(two(bundle), CELL, Cache(tmp_path / "cache"))
    assert causes(answer) == found and answer.differ == PARTS
    unknown = [each for each in answer.mixtures if each.shows is None]
    assert [sorted(each.second) for each in unknown] == [["ptxas"], ["ptxas", "tileiras"]]
    assert all("refuses" in each.said for each in unknown)


def test_a_kernel_of_the_same_version_is_told_from_a_tool(
    bundle: Make, usages: dict[bytes, Usage], tmp_path: Path
) -> None:
    fill(usages, lambda cubin: cubin[0] == "b")
    answer = bisect(two(bundle, (b"a", b"b")), CELL, Cache(tmp_path / "cache"))
    assert causes(answer) == [["kernel"]] and len(answer.mixtures) == 15
    assert answer.lines()[-1] == "made by: kernel"
    usages[b"b111"] = PLAIN  # the kernel alone does nothing: only with the new tileiras
    usages |= {f"b{rest}".encode(): PLAIN for rest in ("112", "122", "121")}
    answer = bisect(two(bundle, (b"a", b"b")), CELL, Cache(tmp_path / "cache"))
    assert answer.lines()[-1] == "made by: kernel together with tileiras"


def test_a_command_decides_by_its_exit_code(bundle: Make, tmp_path: Path) -> None:
    bundles = two(bundle)
    script = tmp_path / "check.py"
    script.write_text(
        "import json, sys\n"
        "base, new = (json.load(open(f'{path}/manifest.json'))['tools'] for path in sys.argv[1:])\n"
        "assert base['ptxas']['version'] == '1'\n"
        "sys.exit(125 if new['libnvvm']['version'] == '1' else 9 * (new['ptxas']['version'] == '2'))\n"
    )
    answer = bisect(bundles, CELL, Cache(tmp_path / "cache"), f"{sys.executable} {script} {{base}} {{bundle}}")
    assert causes(answer) == [["ptxas", "libnvvm"]]
    assert json.loads(json.dumps(answer.to_json()))["mixtures"][0]["shows"] is None
    with pytest.raises(UsageError, match="cannot be started"):
        bisect(bundles, CELL, Cache(tmp_path / "cache"), "/no/such/command")


def test_what_cannot_be_taken_apart(
    bundle: Make, usages: dict[bytes, Usage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    fill(usages, lambda _: False)
    bundles = two(bundle)
    with pytest.raises(UsageError, match="same resources and instructions"):
        bisect(bundles, CELL, cache)
    with pytest.raises(UsageError, match="has no cubin of py/gelu_1024_f16 sm_80"):
        bisect(bundles, "py/gelu_1024_f16 sm_80", cache)
    with pytest.raises(UsageError, match="is the same in both"):
        bisect((bundles[0], bundles[0]), CELL, cache)
    monkeypatch.setattr(ci.diff.bisect, "toolkit", lambda _: kit("other"))
    with pytest.raises(ToolchainError, match="not the tileiras of toolkit other here"):
        bisect(bundles, CELL, cache)


def test_a_build_that_does_not_repeat_is_refused(bundle: Make, tmp_path: Path) -> None:
    odd = bundle("odd", {"gelu_1024_f16": {"sm_90": b"odd"}}, tools=dict.fromkeys(PARTS, OLD), code=b"a")
    with pytest.raises(ToolchainError, match="first bundle's code again gives another cubin"):
        bisect((odd, two(bundle)[1]), CELL, Cache(tmp_path / "cache"))


def test_kernel_and_bytecode_version_are_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a writer whose code names the version: the same kernel in two versions differs in `bytecode` alone."""
    monkeypatch.setattr(
        ci.diff.bisect,
        "_rewritten",
        lambda artifact, version: tile_ir(artifact.payload[:1] + version.encode(), version),
    )

    def build(kernel: bytes, version: str) -> ci.diff.bisect.Build:
        artifact = tile_ir(kernel + version.encode(), version)
        return ci.diff.bisect.Build(None, artifact, b"", {})  # type: ignore[arg-type]

    old = build(b"a", "13.3")
    assert ci.diff.bisect._differ(old, build(b"a", "13.4")) == (("bytecode",), "")
    assert ci.diff.bisect._differ(old, build(b"b", "13.3")) == (("kernel",), "")
    new = build(b"b", "13.4")
    assert ci.diff.bisect._differ(old, new) == (("kernel", "bytecode"), "")
    code = {
        names: ci.diff.bisect._code(old, new, frozenset(names)).payload
        for names in ((), ("kernel",), ("bytecode",), ("kernel", "bytecode"))
    }
    assert list(code.values()) == [b"a13.3", b"b13.3", b"a13.4", b"b13.4"]
