"""Where results come from: what a file of results says of it, and the check that a bundle is the one measured."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.results import origin
from conformance.results.origin import Origin
from toolchain.bundles import checkout as checkouts
from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.errors import UsageError
from toolchain.runtime import CpuExecutor
from toolchain.runtime.executor import Loaded

CUBIN, CODE = b"\x7fELF of gelu", b"bytecode of gelu"
Make = Callable[[bytes], Bundle]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def compiled(cubin: bytes) -> Bundle:
        spec = EntrySpec("gelu_f32", "gelu", "mlir", "f32")
        tools = {"tileiras": {"version": "13.5", "sha256": "ab"}}
        return write(tmp_path / "bundle", [Compiled(spec, tile_ir(CODE, "13.3"), {"sm_90": cubin})], tools)

    return compiled


@pytest.fixture
def ran(make: Make) -> Origin:
    """Of a run of a bundle, on a GPU and on the interpreter."""
    kernels = [Loaded("mlir", "gelu_f32", target, hashlib.sha256(data).hexdigest())
               for target, data in (("sm_90", CUBIN), ("cpu", CODE))]  # fmt: skip
    found = origin.describe(make(CUBIN), [CpuExecutor()], ["tilestack", "matrix", "run"])
    return found.with_kernels(kernels)


@pytest.mark.usefixtures("checkout")
def test_an_origin_names_commit_command_and_bundle(ran: Origin, checkout: Path) -> None:
    table = ran.to_json()
    assert (table["commit"], table["dirty"]) == (checkouts.commit(checkout)["commit"], False)
    assert table["command"] == ["tilestack", "matrix", "run"]
    assert table["bundle"]["cells"] == {"gelu-mlir-f32": {"sm_90": 1}}
    assert table["tools"] == {"tileiras": {"version": "13.5", "sha256": "ab"}}
    assert table["devices"] == [{"executor": "cpu interpreter", "kind": "cpu"}]
    assert [kernel["target"] for kernel in table["kernels"]] == ["cpu", "sm_90"]
    assert Origin.from_json(table) == replace(ran, devices=tuple(ran.devices))


def test_it_names_the_container_image_that_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert origin.host()["image"] == ""
    monkeypatch.setenv("TILESTACK_IMAGE", "sha256:ab")
    assert origin.host()["image"] == "sha256:ab"


def test_the_kernels_of_some_entries_alone(ran: Origin) -> None:
    assert origin.only(ran, {("mlir", "gelu_f32")}) == ran
    assert origin.only(ran, {("py", "gelu_f32")}).kernels == ()


def test_a_change_makes_the_tree_dirty(checkout: Path, make: Make) -> None:
    (checkout / "kernels/one.mlir").write_text("two")
    table = origin.describe(make(CUBIN), [], []).to_json()
    assert table["dirty"] is True
    assert table["changes"]


def test_an_unknown_commit_is_neither_clean_nor_dirty(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkouts, "ROOT", tmp_path)
    table = origin.describe(make(CUBIN), [], []).to_json()
    assert (table["commit"], table["dirty"]) == ("", None)


def test_the_bundle_that_was_measured_is_like_it(ran: Origin, make: Make) -> None:
    assert origin.unlike(ran, make(CUBIN)) == []


def test_a_bundle_with_another_cubin_is_not_the_one_measured(ran: Origin, make: Make) -> None:
    (line,) = origin.unlike(ran, make(b"\x7fELF of another"))
    assert line.startswith("mlir/gelu_f32 for sm_90: sha256 ")
    assert hashlib.sha256(CUBIN).hexdigest() in line


def test_a_bundle_without_the_kernel_is_not_the_one_measured(ran: Origin, make: Make) -> None:
    lines = origin.unlike(ran.with_kernels([Loaded("py", "softmax", "sm_80", "0" * 64)]), make(CUBIN))
    assert lines == [f"py/softmax for sm_80: the bundle has none; {'0' * 64} ran"]


def test_a_damaged_file_is_not_the_one_measured(ran: Origin, make: Make) -> None:
    bundle = make(CUBIN)
    bundle.entries[0].cubins["sm_90"].path.write_bytes(b"x")
    (line,) = origin.unlike(ran, bundle)
    assert "is damaged" in line


def test_results_of_an_older_version_say_no_origin(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with pytest.raises(UsageError, match="cannot be read"):
        origin.read(path)
    path.write_text('{"format": 1, "environment": {}, "rows": []}')
    with pytest.raises(UsageError, match="does not say where its results come from"):
        origin.read(path)
