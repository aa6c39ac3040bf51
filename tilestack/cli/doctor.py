"""`doctor`: is everything right on this machine?"""

from __future__ import annotations

import argparse
from typing import Any

from .common.options import add_json, command


def add(commands: Any) -> None:
    add_json(
        command(
            commands, "doctor", doctor, "show what is installed here, and what to do",
            "  tilestack doctor\n"
            "  tilestack doctor --json       exits with 0, with 4 if something is broken, with 7 if only the GPU is\n",
        )
    )  # fmt: skip


def doctor(args: argparse.Namespace) -> int:
    from toolchain import doctor as toolchain_doctor

    return toolchain_doctor.report(as_json=args.json)
