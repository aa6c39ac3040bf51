"""The `tilestack` command: thin, one module per group of commands.

In a checkout the library's packages stand beside this one. In an installed wheel they lie below it, in `_lib`, so that
nobody else's `toolchain` or `ci` is in their way; a process that imports tilestack finds them from then on.
"""

import sys
from pathlib import Path

_LIBRARY = Path(__file__).parent / "_lib"
if _LIBRARY.is_dir():
    sys.path.insert(0, str(_LIBRARY))  # before a folder of the same name that the command happens to be run in
