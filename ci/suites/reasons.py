"""Classes of failures: what a test's name and its reason say about why it does not pass."""

from __future__ import annotations

import re

TOO_LONG = "took too long"
OTHER_BITS = "not bit-equal to PyTorch's function on this CPU"
VARY = (TOO_LONG, OTHER_BITS)  # with the machine, and with the random inputs
# The first pattern that is found in the name and the reason gives the class.
CLASSES: tuple[tuple[str, str], ...] = (
    ("taken, though their tools refuse it", r"taken, though it is wrong"),
    ("refused for another reason", r"refused before line"),
    ("a hint that their tools ignore or warn of", r"opt_hints"),
    ("attributes beside an operation's own", r"expected .*found '\{'"),
    ("a type of parameter that the compiler refuses", r"parameters are scalar tiles"),
    ("a complement that leaves offsets out", r"has no complement: .* leaves a hole"),
    ("narrower elements at a stride that is not known", r"they need one mode of stride 1 to lie in, and there is none"),
    ("refused on a CPU", r"CUDA graph|CuPy|Numba|JAX|not emulated|assert 801 == 0"),
    ("a program that cuTile itself refuses", r"TypeCheckingError"),
    ("an element type that the interpreter lacks", r"the interpreter has no tiles of"),
    ("an operation that the interpreter lacks", r"the interpreter has no \w+"),
    ("other version of cuTile than the suite is for",
     (r"F8E\w+FNU|DebugAttrTable|Expected compile\(\)|num_worker_warps|takes \d+ positional arguments|"
     r"flush_l2|_DTypePromotionImpl|compiler_version|test_crash_dump|test_print\.py")),
    ("a message of cuTile that differs", r"Regex pattern did not match"),
    ("stopped by the sanitizer", r"SanitizerError"),
    (TOO_LONG, r"Timeout|timed out after"),
    ("a module that is not installed", r"ModuleNotFoundError|ImportError"),
    ("a process that the test starts failed", r"CompletedProcess|CalledProcessError|subprocess failed"),
    (OTHER_BITS, r"(trig|root_ops|array_log)\S* .*not equal"),
    ("a wrong value", r"not close|Mismatched elements|assert_close|not equal|DID NOT MATCH"),
    ("several configurations of the autotuner, of which one is taken", r"test_tune"),
    ("a function that PyTorch lacks on a CPU", r"not implemented for"),
    ("more memory than there was", r"^\S* \[gw\d+\]|can't allocate memory"),
)  # fmt: skip


def class_of(test: str, reason: str) -> str:
    """The class of a test's failure."""
    said = f"{test} {reason}"
    return next((name for name, pattern in CLASSES if re.search(pattern, said)), "other")
