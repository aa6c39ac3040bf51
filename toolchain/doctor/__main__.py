"""`python -m toolchain.doctor`."""

import sys

from . import main

sys.exit(main())
