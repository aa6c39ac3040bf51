"""The C++ header of a bundle: a class with a function for each op and dtype, and one for each entry.

Such a function takes what the kernel does: each array as its address, sizes and strides, each scalar by value. The one
of an op launches the first entry that fits, as `Bundle.select` chooses it; the one of an entry launches that entry, or
says why it does not fit. cute_runtime/bundle.hpp has what all of them share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.contract.entry import ALIGNMENT, EntrySpec
from toolchain.errors import UsageError

from .expression import to_cpp

TYPES = {
    "f32": "float", "f16": "float16", "bf16": "bfloat16", "f8E4M3FN": "float8_e4m3", "i8": "std::int8_t",
    "i32": "std::int32_t", "i64": "std::int64_t",
}  # fmt: skip
_PER_LINE = 24  # bytes of an embedded cubin


@dataclass(frozen=True)
class Export:
    """What a header is written of: the entries of one source and target, in order of preference. `embed`: it has the
    cubins in it, else it reads them from the bundle's folder, which is given at run time."""

    bundle: Bundle
    source: str
    target: str
    entries: tuple[BundleEntry, ...]
    namespace: str
    embed: bool

    def text(self) -> str:
        """The header."""
        return "\n".join(_header(self)) + "\n"


def choose(
    bundle: Bundle, source: str | None, target: str | None, ops: Sequence[str], dtypes: Sequence[str]
) -> tuple[str, str, tuple[BundleEntry, ...]]:
    """The source, the target and the entries of them that a header gets. Raises UsageError if the bundle has several
    sources or targets and none is named, or nothing of what is named."""
    source = _one_of("source", source, bundle.sources, bundle)
    target = _one_of("target", target, bundle.targets, bundle)
    entries = tuple(
        entry
        for entry in bundle.entries
        if entry.spec.source == source
        and target in entry.cubins
        and (not ops or entry.spec.op in ops)
        and (not dtypes or entry.spec.dtype in dtypes)
    )
    if absent := [op for op in ops if op not in {entry.spec.op for entry in entries}]:
        raise UsageError(f"{bundle.root} has no cubin of {source}/{absent[0]} for {target}")
    if not entries:
        raise UsageError(f"{bundle.root} has no cubin of {source} for {target} with dtype {', '.join(dtypes)}")
    if mapped := [entry.spec.symbol for entry in entries if entry.form.maps]:
        raise UsageError(
            f"{source}/{mapped[0]} takes tensor maps, which a header cannot make; so do {len(mapped) - 1} more entries",
            hint="export another source, or ops that have no such entry (--op)",
        )
    return source, target, entries


def _one_of(what: str, named: str | None, there: Sequence[str], bundle: Bundle) -> str:
    if not there:
        raise UsageError(f"{bundle.root} holds bytecode only, no cubin", hint="compile it with a --target")
    if named is None and len(there) > 1:
        raise UsageError(f"{bundle.root} has the {what}s {', '.join(there)}", hint=f"choose one with --{what}")
    if named is not None and named not in there:
        raise UsageError(f"{bundle.root} has no {what} {named}", hint=f"one of {', '.join(there)}")
    return named or there[0]


def _header(export: Export) -> Iterator[str]:
    ops = list(_by_op(export.entries))
    yield "// Written by `tilestack export-cpp`: do not edit."
    yield f"// {len(export.entries)} entries of source {export.source} for {export.target}."
    yield from ("#pragma once", "", "#include <cute_runtime/bundle.hpp>", "")
    yield from ("#include <algorithm>", "#include <cstdint>", "#include <string>", "#include <utility>", "")
    yield from (f"namespace {export.namespace} {{", "")
    yield from ("using namespace cute_runtime;", "")
    for entries in ops:
        yield from _arguments(entries[0].spec)
    if export.embed:
        yield from _images(export)
    yield "// The kernels for a GPU, each loaded when it is first launched. Not for several threads at once."
    yield from ("class Kernels {", " public:")
    yield from _constructor(export)
    for entries in ops:
        yield from _op(entries)
    yield from ("", " private:")
    for entry in export.entries:
        yield from _unmet(entry.spec)
        yield from _start(export, entry)
    yield "  Images images_;"
    if not export.embed:
        yield "  std::string folder_;"
    yield from ("};", "", f"}}  // namespace {export.namespace}")


def _by_op(entries: Sequence[BundleEntry]) -> Iterator[list[BundleEntry]]:
    def kind(entry: BundleEntry) -> tuple[str, str]:
        return entry.spec.op, entry.spec.dtype

    for _, group in groupby(sorted(entries, key=kind), kind):  # sorting keeps the order within a group
        yield list(group)


def _name(spec: EntrySpec) -> str:
    return f"{spec.op}_{spec.dtype}"


def _parameters(spec: EntrySpec) -> list[str]:
    """The type and name of each parameter."""

    def kind(dtype: str, dims: Sequence[str]) -> str:
        return f"Array<{TYPES[dtype]}, {len(dims)}>" if dims else TYPES[dtype]

    return [f"{kind(param.storage(spec.dtype), param.dims)} {param.name}" for param in spec.params]


def _dims(spec: EntrySpec) -> dict[str, str]:
    """The C++ text of each dimension's size: that of the first array that has it."""
    found: dict[str, str] = {}
    for param in spec.params:
        for index, dim in enumerate(param.dims):
            found.setdefault(dim, f"{param.name}.sizes[{index}]")
    return found


def _arguments(spec: EntrySpec) -> Iterator[str]:
    """A structure of an op's arguments and the sizes of its dimensions, with the check that holds for every entry."""
    name, dims = _name(spec), _dims(spec)
    yield f"struct {name}_arguments {{"
    yield from (f"  {parameter};" for parameter in _parameters(spec))
    yield from (f"  std::int64_t size_{dim} = {text};" for dim, text in dims.items())
    yield from ("", "  void check() const {")
    for param in spec.params:
        for index, dim in enumerate(param.dims):
            if (place := f"{param.name}.sizes[{index}]") != dims[dim]:
                yield f'    same_size("{name}", "{dim}", {place}, {dims[dim]});'
        if param.dims:
            yield f'    last_contiguous("{name}", "{param.name}", {param.name});'
    yield from ("  }", "};", "")


def _images(export: Export) -> Iterator[str]:
    files = {entry.cubins[export.target].sha256: entry.cubins[export.target] for entry in export.entries}
    for sha256, file in files.items():
        content = export.bundle.read(file)
        yield f"inline constexpr unsigned char cubin_{sha256[:16]}[] = {{"
        for at in range(0, len(content), _PER_LINE):
            yield "  " + ",".join(str(byte) for byte in content[at : at + _PER_LINE]) + ","
        yield from ("};", "")


def _constructor(export: Export) -> Iterator[str]:
    yield f"  // {'' if export.embed else '`bundle`: its folder. '}Throws Error if the GPU cannot run {export.target}."
    takes, sets = ("", "") if export.embed else (", std::string bundle", ", folder_(std::move(bundle))")
    yield f'  explicit Kernels(Device device{takes}) : images_(std::move(device), "{export.target}"){sets} {{}}'


def _op(entries: Sequence[BundleEntry]) -> Iterator[str]:
    spec = entries[0].spec
    name, kind = _name(spec), f"{_name(spec)}_arguments"
    yield ""
    yield from (f"  // {line}" for line in spec.op_spec.doc.splitlines())
    for param in spec.params:
        dims = f"[{', '.join(param.dims)}]" if param.dims else ""
        yield f"  // {param.role} {param.name}: {param.storage(spec.dtype)}{dims}"
    yield f"  void {name}({', '.join(_parameters(spec))}, CUstream stream = nullptr) {{"
    yield f"    const {kind} given{{{', '.join(param.name for param in spec.params)}}};"
    yield from ("    given.check();", f'    Refused refused("{name}");')
    for entry in entries:
        symbol = entry.spec.symbol
        yield f'    if (refused.fits("{symbol}", unmet_{symbol}(given))) return start_{symbol}(given, stream);'
    yield from ("    throw refused.error();", "  }")
    for entry in entries:
        symbol = entry.spec.symbol
        yield f"  void launch_{symbol}(const {kind}& given, CUstream stream = nullptr) {{"
        yield from ("    given.check();", f'    Refused refused("{name}");')
        yield f'    if (!refused.fits("{symbol}", unmet_{symbol}(given))) throw refused.error();'
        yield from (f"    start_{symbol}(given, stream);", "  }")


def _unmet(spec: EntrySpec) -> Iterator[str]:
    """EntrySpec.unmet in C++."""
    checks = list(_checks(spec))
    given = " given" if checks else ""
    yield f"  static std::string unmet_{spec.symbol}(const {_name(spec)}_arguments&{given}) {{"
    for condition, why in checks:
        yield f'    if ({condition}) return "{why}";'
    yield from ('    return "";', "  }")


def _checks(spec: EntrySpec) -> Iterator[tuple[str, str]]:
    """Each condition under which an entry does not fit, and what is then said."""
    names = _names(spec)
    for name in spec.aligned:
        why = f"{name} must be aligned to {ALIGNMENT} bytes in address and strides"
        yield f"!given.{name}.aligned({ALIGNMENT})", why
    for name in spec.contiguous:
        why = f"{name} must be without gaps, at a multiple of {ALIGNMENT} bytes"
        yield f"!given.{name}.address_aligned({ALIGNMENT}) || !given.{name}.contiguous()", why
    for name, step in spec.multiples.items():
        yield f"{names[name]} % {step} != 0", f"{name} must be a multiple of {step}"
    dims = _dims(spec)
    for name, size in (*spec.sizes.items(), *spec.constants.items()):
        if name in dims:
            yield f"{names[name]} != {size}", f"{name} must be {size}"
    for text in spec.where:
        yield f"!({to_cpp(text, names)})", f"{text} does not hold"
    if spec.cost is None:
        return
    rows, columns = (names[dim] for dim in spec.op_spec.outputs[0].dims[-2:])
    sms, (own, *others) = spec.cost.sms, spec.cost.tiles
    if limit := spec.cost.rounds:
        why = f"tiles of {own[0]} x {own[1]} take more than {limit} rounds of {sms}"
        yield f"rounds({sms}, {rows}, {columns}, {own[0]}, {own[1]}) > {limit}", why
    for other in others:
        costs = [f"{tile[2]} * rounds({sms}, {rows}, {columns}, {tile[0]}, {tile[1]})" for tile in (other, own)]
        yield " < ".join(costs), f"tiles of {other[0]} x {other[1]} are cheaper than of {own[0]} x {own[1]}"


def _names(spec: EntrySpec) -> dict[str, str | int]:
    """What the names in an entry's expressions are in C++. A dimension comes before a constant of its name."""
    return {"SMS": "images_.multiprocessors()", **spec.constants, **{dim: f"given.size_{dim}" for dim in _dims(spec)}}


def _start(export: Export, entry: BundleEntry) -> Iterator[str]:
    spec, form, file = entry.spec, entry.form, entry.cubins[export.target]
    if export.embed:
        image = f"Images::text(cubin_{file.sha256[:16]})"
    else:
        image = f'KernelExecutor::read(folder_ + "/{file.path.relative_to(export.bundle.root).as_posix()}")'
    names = _names(spec)
    grid = ", ".join(to_cpp(text, names) for text in spec.grid)
    block = ", ".join(map(str, form.block))
    yield f"  void start_{spec.symbol}(const {_name(spec)}_arguments& given, CUstream stream) {{"
    if form.index_bits < 64:  # sizes and strides of 32 bits cannot go beyond 64
        for name in (param.name for param in spec.params if param.dims):
            yield f'    within_reach("{spec.symbol}", "{name}", given.{name}, {form.index_bits});'
    yield f'    auto& kernel = images_.kernel("{spec.symbol}", [&] {{ return {image}; }});'
    yield f"    launch_grid(kernel, {{{grid}}}, {{{block}}}, {form.shared_bytes}, stream,"
    yield f"                {', '.join(f'given.{param.name}' for param in spec.params)});"
    yield "  }"
