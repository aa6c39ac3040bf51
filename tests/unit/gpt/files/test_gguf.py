"""Files of GGUF: what is in them, and what is said about damaged ones."""

from __future__ import annotations

import struct
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from gpt.files import gguf as gguf_file
from gpt.files.gguf import KINDS, read_header
from toolchain.errors import UsageError

from ..gguf_bytes import header, padded, plain, row, text, whole, write

pytestmark = pytest.mark.needs("gguf")

KEYS = {
    "general.architecture": "llama", "a.count": 7, "a.eps": 0.5, "a.on": True, "a.texts": ["ab", "", "日本"],
    "a.numbers": np.arange(5, dtype=np.int32),
}  # fmt: skip
RNG = np.random.default_rng(3)
X = RNG.standard_normal((6, 512)).astype(np.float32)


def quantized(kind: str) -> NDArray[np.uint8]:
    """X in blocks. gguf has no way to the two K-kinds: there it is any bytes with scales that are small numbers."""
    import gguf

    if kind.endswith("_K"):
        block = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][1]
        blocks = RNG.integers(0, 256, (6, 2, block), np.uint8)
        scale = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
        for at in (0, 2) if kind == "Q4_K" else (block - 2,):
            blocks[..., at : at + 2] = scale
        return blocks.reshape(6, -1)
    return np.ascontiguousarray(gguf.quantize(X, gguf.GGMLQuantizationType[kind])).view(np.uint8).reshape(6, -1)


def test_keys_and_tensors(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", KEYS, {"x": plain(X), "y": plain(X[0])})
    found = read_header(path)
    assert found.keys.keys() == KEYS.keys()
    assert [found.keys[n] for n in ("a.count", "a.eps", "a.on", "a.texts")] == [7, 0.5, True, ("ab", "", "日本")]
    assert np.array_equal(found.keys["a.numbers"], KEYS["a.numbers"])  # type: ignore[arg-type]
    assert {name: stored.shape for name, stored in found.tensors.items()} == {"x": (6, 512), "y": (512,)}
    assert np.array_equal(found.read("x", np.float32), X) and np.array_equal(found.read("y", np.float32), X[0])


def test_a_file_that_the_library_wrote(tmp_path: Path) -> None:
    import gguf

    path = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_token_list(["a", "b"])
    writer.add_token_scores([0.5, 1.5])
    writer.add_tensor("x", X)
    writer.add_tensor("q", quantized("Q8_0"), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read_header(path)
    assert found.keys["llama.context_length"] == 128 and found.keys["tokenizer.ggml.tokens"] == ("a", "b")
    assert np.array_equal(found.read("x", np.float32), X)
    assert np.abs(found.read("q", np.float32) - X).max() < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_each_kind_in_pieces(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import gguf

    packed = quantized(kind)
    found = read_header(write(tmp_path / "a.gguf", {}, {"x": (kind, X.shape, packed.tobytes())}))
    wanted = gguf.dequantize(packed, gguf.GGMLQuantizationType[kind])
    monkeypatch.setattr(gguf_file, "_AT_ONCE", 4 * 512)  # six rows are then two pieces
    for dtype in (np.float32, ml_dtypes.bfloat16, np.float16):
        read = found.read("x", dtype)
        assert read.dtype == dtype and np.array_equal(read, wanted.astype(dtype))
    if not kind.endswith("_K"):
        assert np.abs(wanted - X).max() < {"F32": 1e-9, "F16": 2e-3, "BF16": 2e-2, "Q8_0": 0.02}.get(kind, 0.4)


def test_little_memory_beside_the_tensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.zeros((1024, 34 * 64), np.uint8)  # 2^21 numbers
    found = read_header(write(tmp_path / "a.gguf", {}, {"x": ("Q8_0", (1024, 2048), rows.tobytes())}))
    found.read("x", ml_dtypes.bfloat16)  # what the library keeps
    monkeypatch.setattr(gguf_file, "_AT_ONCE", 1 << 16)
    tracemalloc.start()
    try:
        tensor = found.read("x", ml_dtypes.bfloat16)
        assert tracemalloc.get_traced_memory()[1] < 1.3 * tensor.nbytes
    finally:
        tracemalloc.stop()


GOOD = whole(KEYS, {"x": plain(X)})


def test_every_truncation_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    ends = [*range(0, len(header(KEYS, [row("x", 0, X.shape, 0)])), 2), len(GOOD) - 5000, len(GOOD) - 1]
    for end in ends:
        path.write_bytes(GOOD[:end])
        with pytest.raises(UsageError, match=r"a\.gguf is (damaged|empty)"):
            read_header(path)


def test_a_file_that_was_cut_after_its_header_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(GOOD)
    found = read_header(path)
    path.write_bytes(GOOD[:-9])
    with pytest.raises(UsageError, match="ends within x"):
        found.read("x", np.float32)


def one(**changes: Any) -> bytes:
    """A file with one tensor of 32 numbers, and something else in its row."""
    given = {"name": "x", "kind": 0, "shape": (32,), "offset": 0, **changes}
    return padded(header({}, [row(**given)])) + bytes(128)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\3\4" + bytes(60), "does not begin with GGUF"),
        (header({}, [], version=1), "version 1"),
        (header({}, [], version=3 << 24), "little endian"),
        (header({}, [], counts=(0, 1 << 62)), f"it says that it has {1 << 62} keys"),
        (header({}, [], counts=(1 << 62, 0)), f"it says that it has {1 << 62} tensors"),
        (header({}, [], counts=((1 << 16) + 1, 0)) + bytes(2_000_000), "at most 65536 are read"),
        (header({"a": 1}, [], counts=(0, 2)) + bytes(3), "2 keys"),
        (header({"a": struct.pack("<IQ", 8, 1 << 60)}, []), f"{1 << 60} bytes of a"),
        (header({"a": struct.pack("<IIQ", 9, 8, 1 << 60)}, []), f"{1 << 60} texts of a"),
        (header({"a": struct.pack("<IIQ", 9, 4, 1 << 60)}, []), f"{1 << 60} values of a"),
        (header({"a": struct.pack("<IIQ", 9, 9, 1)}, []), "type 9"),  # arrays in arrays
        (header({"a": struct.pack("<I", 99)}, []), "type 99"),
        (header({"a": struct.pack("<I", 8) + text(b"\xff")}, []), "a is not UTF-8"),
        (header({}, [], counts=(0, 2)) + (text("a") + struct.pack("<II", 4, 1)) * 2, "a is there twice"),
        (padded(header({}, [row("x", 0, (32,), 0), row("x", 0, (32,), 128)])) + bytes(256), "x is there twice"),
        (padded(header({}, [row("x", 0, (32,), 0), row("y", 0, (32,), 96)])) + bytes(256), "y and x are to share"),
        (header({"general.alignment": 24}, []), "alignment is 24"),
        (header({"general.alignment": 0}, []), "alignment is 0"),
        (header({"general.alignment": "a"}, []), "alignment is 'a'"),
        (one(offset=32), "x is to end at byte"),
        (one(offset=1 << 63), "x is to end at byte"),
        (one(offset=4), "offset 4, which is not a multiple of 32"),
        (one(shape=(1 << 40, 1 << 40)), "x is to end at byte"),
        (one(shape=(64,)), "x is to end at byte"),
        (one(shape=(0,)), r"F32 of shape \[0\]"),
        (one(shape=()), "0 dimensions"),
        (one(shape=(1, 1, 1, 1, 1)), "5 dimensions"),
        (one(kind=8, shape=(31,)), "whole blocks of 32"),
        (one(kind=12, shape=(32,)), "whole blocks of 256"),
        (one(kind=77), "number 77, which is none"),
        (one(kind=13, shape=(256,)), "x is stored as Q5_K, which is not read"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)  # fmt: skip
def test_a_damaged_file_is_refused_in_one_line_and_little_memory(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(data)
    with pytest.raises(UsageError):
        read_header(path)  # the first time in a process it imports a library
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=said) as raised:
            read_header(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert "\n" not in str(raised.value.args[0]) and raised.value.exit_code == 2


def test_a_header_beyond_all_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_file, "MOST_HEADER", 1000)
    path = write(tmp_path / "a.gguf", {"a": "b" * 900, "c": 1}, {})
    assert read_header(path).keys["c"] == 1
    write(path, {"a": "b" * 900, "c": 1, "long": 7, "longer": 8, "longest": 9}, {})
    with pytest.raises(UsageError, match="header has over 1000 bytes"):
        read_header(path)


@pytest.mark.parametrize("spoil", [lambda byte: byte ^ 0xFF, lambda byte: (byte + 1) & 0xFF])
def test_bytes_turned_over_never_end_in_another_error(tmp_path: Path, spoil: Callable[[int], int]) -> None:
    path = tmp_path / "a.gguf"
    for at in range(0, len(header(KEYS, [row("x", 0, X.shape, 0)])), 2):
        data = bytearray(GOOD)
        data[at] = spoil(data[at])
        path.write_bytes(data)
        try:
            found = read_header(path)
            for name in found.tensors:
                found.read(name, np.float32)
        except UsageError:
            pass


def test_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UsageError, match="needs the `gguf` package"):
        read_header(write(tmp_path / "a.gguf", {}, {"x": plain(X)}))
    with pytest.raises(UsageError, match="cannot be read"):
        read_header(tmp_path / "none.gguf")
