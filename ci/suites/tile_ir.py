"""The tests of NVIDIA's cuda_tile dialect on our reader, verifier, printer and bytecode: a plugin of pytest.

A chunk that expects an error has to be refused, at the line where it is expected or behind it; so has one that expects
a warning, of a hint that does nothing. Any other is read and
verified, and again after it was printed, and after it was written as bytecode. What their tools print is not compared,
and the passes of their optimizer are not run.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolchain.cute.chunks import Chunk, Expected, TestFile
from toolchain.errors import BytecodeError, SourceError, TilestackError, UsageError
from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect.control import ModuleOp
from toolchain.tileir.dialect.verify import errors_of, verify
from toolchain.tileir.source import Source
from toolchain.tileir.text.toplevel import FileParser

from .chunk_items import collecting
from .tile_ir_functions import TestParser

_VERSION = re.compile(r"-bytecode-version=(\S+)")
_BYTECODE = re.compile(r"%S/(\S+)")
_PLACE = re.compile(r":(\d+):\d+: error:")
_REFUSALS = (SourceError, BytecodeError, UsageError)


def judge(path: Path, file: TestFile, chunk: Chunk) -> None:
    """Fails if we do not do with a chunk what their tools are to do with it."""
    versions = [match[1] for run in file.runs if (match := _VERSION.search(run))]
    if not file.runs or any("--list-versions" in run for run in file.runs):
        pytest.skip("it tests how their tools are called")
    if any(version.startswith("250.") for version in versions):
        pytest.skip("bytecode 250 has only operations for tests")
    if chunk.errors and any(re.search(r"--?(test-|pass-pipeline)", run) for run in file.runs):
        pytest.skip("it tests a pass of theirs")
    inputs = [(match[1], run.startswith("not ")) for run in file.runs if (match := _BYTECODE.search(run))]
    for name, refused in inputs:
        _check((path.parent / name).read_bytes(), name, refused=refused)
    if inputs:
        return
    refused = bool(chunk.errors or _warnings(chunk)) or any(run.startswith("not ") for run in file.runs)
    for version in versions or [None]:
        try:
            _take(chunk, path.name, version, strict=any("-mlir-to-cudatilebc" in run for run in file.runs))
        except _REFUSALS as error:
            _need_expected(chunk, error, refused=refused)
        else:
            assert not refused, (
                f"taken, though it is wrong: {_expected(chunk)[0].message if _expected(chunk) else file.runs[0]}"
            )


def _check(raw: bytes, name: str, *, refused: bool) -> None:
    """Reads and verifies bytecode."""
    try:
        verify(bytecode.read(raw, name=name), filename=name)
    except _REFUSALS:
        if not refused:
            raise
    else:
        assert not refused, f"{name} is taken, though it is wrong"


def _take(chunk: Chunk, name: str, version: str | None, *, strict: bool) -> None:
    """Takes a chunk through all that we have for it. Raises TilestackError for the first thing that is wrong.
    `strict`: it may have nothing that only tests have."""
    source = Source(chunk.in_place, name)
    for module in (FileParser if strict else TestParser)(source).modules():
        for error in errors_of(module, text=chunk.in_place, filename=name):
            raise error
        printed = text.print_module(module)
        again = text.parse(printed, filename="printed")
        verify(again, text=printed, filename="printed")
        _need_equal(module, again, "printed and read")
        if "loc(" in chunk.text:
            bytecode.write(module, version or "13.5", debug_info=True)
        written = bytecode.write(module, version or "13.5")
        read = bytecode.read(written, name="written")
        verify(read, filename="written")
        _need_equal(module, read, "written as bytecode and read")


def _need_equal(before: ModuleOp, after: ModuleOp, how: str) -> None:
    """Values have no names in bytecode, so both are printed without."""
    for module in (before, after):
        for op in module.walk():
            for value in (
                *op.results,
                *(arg for region in op.regions for block in region.blocks for arg in block.args),
            ):
                value.name_hint = None
    bodies = [text.print_module(module).partition("{\n")[2] for module in (before, after)]  # the module's name is lost
    assert bodies[0] == bodies[1], f"it is another module when it has been {how}"


def _warnings(chunk: Chunk) -> list[Expected]:
    return [each for each in chunk.expected if each.kind == "warning"]


def _expected(chunk: Chunk) -> list[Expected]:
    """What is to be said of a chunk that is refused: we take no hint that does nothing, of which their tools warn."""
    return [*chunk.errors, *_warnings(chunk)]


def _need_expected(chunk: Chunk, error: TilestackError, *, refused: bool) -> None:
    if not refused:
        raise error
    lines = [expected.line for expected in _expected(chunk) if expected.line is not None]
    place = _PLACE.search(str(error))
    if place is not None and lines:
        # An error in the body of an operation may be told of the operation, or of what is wrong in the body.
        where = f"refused before line {min(lines)}, where it is wrong: {str(error).splitlines()[0]}"
        assert int(place[1]) >= min(lines), where


pytest_collect_file = collecting(judge)
