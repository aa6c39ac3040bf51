"""Which device a launch takes."""

from __future__ import annotations


def device_name() -> str:
    """The name of the device that a launch on arrays in the host's memory takes: the first GPU, or the interpreter.
    Raises DriverTooOld for a driver that cannot run our kernels."""
    from toolchain.runtime import gpus

    from .cpu import NAME

    found = gpus()
    return found[0].name if found else NAME
