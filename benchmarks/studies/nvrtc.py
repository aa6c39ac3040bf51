"""CUDA C++ to a cubin with NVRTC, through cuda-python's bindings."""

from __future__ import annotations

from typing import Any

from toolchain.errors import SourceError, ToolchainError

from .ops import HERE

OPTIONS = (b"--gpu-architecture=sm_90",)


def compile_cuda(op: str) -> bytes:
    """The cubin of `kernels/<op>.cu`. Raises SourceError with the compiler's log, and ToolchainError without NVRTC."""
    try:
        from cuda.bindings import nvrtc  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise ToolchainError(f"NVRTC's bindings are missing: {error}", hint="pip install cuda-bindings") from error
    path = HERE / f"{op}.cu"

    def ok(result: tuple[Any, ...]) -> Any:
        if result[0] != 0:
            raise ToolchainError(f"{path}: NVRTC says {result[0]!s}")
        return result[1] if len(result) == 2 else None

    made = ok(nvrtc.nvrtcCreateProgram(path.read_bytes(), path.name.encode(), 0, [], []))
    (failed,) = nvrtc.nvrtcCompileProgram(made, len(OPTIONS), list(OPTIONS))
    if failed != 0:
        log = b" " * ok(nvrtc.nvrtcGetProgramLogSize(made))
        ok(nvrtc.nvrtcGetProgramLog(made, log))
        raise SourceError(f"{path} does not compile:\n{log.decode().strip(chr(0)).strip()}")
    cubin = b" " * ok(nvrtc.nvrtcGetCUBINSize(made))
    ok(nvrtc.nvrtcGetCUBIN(made, cubin))
    return cubin
