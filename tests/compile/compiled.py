"""What the pinned compiler is known to compile as it should, by content: a test compiles only what is new.

`compiled.txt` beside this file has a line for each entry that passed a check: the check, and a digest of the entry's
bytecode, the target and the compiler's version. `python -m tests.compile.compiled` writes it anew, in ten minutes.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import kernels_mlir
import kernels_py
from conformance.cases.weights_8bits import WEIGHT_8BITS
from toolchain.caching.cache import Cache, key
from toolchain.compiling import pipeline, stages
from toolchain.compiling.cubin import inspect_all
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.contract.targets import select
from toolchain.knobs import cache_dir
from toolchain.pinned.tools import tool

TABLE = Path(__file__).with_suffix(".txt")
MODULES = {"mlir": "kernels_mlir", "py": "kernels_py"}
SOURCES = {"mlir": kernels_mlir.SOURCE, "py": kernels_py.SOURCE}
PORTABLE, TUNED = "portable", "tuned"  # the checks
PREDICTED = ("sm_80", "sm_100", "sm_120")  # and one for each target with predicted entries
TARGETS: Mapping[str, str] = {PORTABLE: "sm_100", TUNED: "sm_90", **{target: target for target in PREDICTED}}
MOST_NEW = 80  # entries that a run compiles because the table lacks them


def all_entries() -> list[EntrySpec]:
    return [spec for source in SOURCES.values() for spec in source.entries()]


def portable(entries: Iterable[EntrySpec], op: str) -> list[EntrySpec]:
    """An op's entries for all targets, in bf16 where there is one."""
    dtype = ops()[op].dtypes[-1]
    return [spec for spec in entries if (spec.op, spec.dtype, spec.targets) == (op, dtype, ())]


def tuned_products(entries: Iterable[EntrySpec]) -> list[EntrySpec]:
    """The products written or tuned for sm_90, in bf16, which is what is tuned."""
    own = (spec for spec in entries if (spec.targets, spec.dtype) == (("sm_90",), "bf16"))
    return [spec for spec in own if spec.op_spec.products or spec.op in WEIGHT_8BITS]


def predicted(entries: Iterable[EntrySpec], target: str) -> list[EntrySpec]:
    """The entries that were predicted for a target, in bf16."""
    return [spec for spec in entries if (spec.targets, spec.dtype) == ((target,), "bf16")]


def new(check: str, entries: Sequence[EntrySpec], exported: Callable[[EntrySpec], bytes]) -> list[EntrySpec]:
    """Those of which the table does not say that they pass. Raises AssertionError if it lacks many."""
    known = set(TABLE.read_text().splitlines())
    found = [spec for spec in entries if _line(check, exported(spec)) not in known]
    assert len(found) <= MOST_NEW, f"{TABLE.name} lacks {len(found)} entries: run python -m tests.compile.compiled"
    return found


def cubin(code: bytes, target: str) -> bytes:
    """Of bytecode. What a machine has compiled, as by nox -s gpu_tests, is not compiled again: it goes by content."""
    name = stages.cubin_key("tile-ir", code, stages.STAGES["tile-ir"].fingerprint, target)
    return Cache(cache_dir()).get_or_make(name, lambda: pipeline.assemble(code, target))


def ptxas_says(text: str) -> str:
    """Of PTX for sm_90a: what spills, and which products wait for one another. It goes by content too."""
    ptxas, options = tool("ptxas"), ("--gpu-name=sm_90a", "--verbose")

    def said() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "k.ptx")
            source.write_text(text)
            done = ptxas.run([*options, f"--output-file={folder}/k.cubin", str(source)])
        return (done.stdout + done.stderr).encode()

    return Cache(cache_dir()).get_or_make(key("ptxas says", text.encode(), ptxas.fingerprint, *options), said).decode()


def broken(entries: Iterable[EntrySpec], exported: Callable[[EntrySpec], bytes]) -> list[str]:
    """The symbols of entries for all targets that do not become a cubin for a target they were not measured on."""
    target = TARGETS[PORTABLE]
    return [spec.symbol for spec in entries if not cubin(exported(spec), target).startswith(b"\x7fELF")]


def slow(entries: Sequence[EntrySpec], target: str = TARGETS[TUNED]) -> list[str]:
    """The symbols of a target's entries of which products wait for the one before, or that spill."""
    cache = Cache(cache_dir())  # by content: what did not change is not compiled or disassembled again
    chosen = [(MODULES[spec.source], spec) for spec in entries]
    made = pipeline.compile_entries(chosen, select([target]), cache, jobs=2)
    assert not made.failures
    cubins = [entry.cubins[target] for entry in made.compiled]
    usages = [usage for found in inspect_all(cubins, cache, jobs=2) for usage in found]
    return [usage.symbol for usage in usages if usage.serialised or usage.spills]


def _line(check: str, data: bytes) -> str:
    compiler = tool("tileiras").version
    return f"{check} {hashlib.sha256(f'{TARGETS[check]} {compiler} '.encode() + data).hexdigest()[:16]}"


def main() -> None:
    def exported(spec: EntrySpec) -> bytes:
        return SOURCES[spec.source].bytecode(spec)

    entries = all_entries()
    chosen = {PORTABLE: [spec for op in ops() for spec in portable(entries, op)], TUNED: tuned_products(entries)}
    wrong = {PORTABLE: broken(chosen[PORTABLE], exported), TUNED: slow(chosen[TUNED])}
    for target in PREDICTED:
        chosen[target] = predicted(entries, target)
        wrong[target] = slow(chosen[target], target)
    passed = [(check, spec) for check, some in chosen.items() for spec in some if spec.symbol not in wrong[check]]
    lines = [_line(check, exported(spec)) for check, spec in passed]
    TABLE.write_text("".join(f"{line}\n" for line in sorted(set(lines))))
    print(f"{TABLE}: {len(lines)} entries", *(f"{check}: {symbol}" for check, some in wrong.items() for symbol in some))


if __name__ == "__main__":
    main()
