"""Every op in numpy float64, the oracle: a module for each family of ops, named as that of its cases.

Names and arguments are those of `toolchain/contract/ops.toml`.
"""

from .arrays import *  # noqa: F403
from .cache_f8 import *  # noqa: F403
from .causal_attention import *  # noqa: F403
from .collectives import *  # noqa: F403
from .decode import *  # noqa: F403
from .grouped import *  # noqa: F403
from .paged import *  # noqa: F403
from .products import *  # noqa: F403
from .rms_products import *  # noqa: F403
from .rows import *  # noqa: F403
from .scaled import *  # noqa: F403
from .tokens import *  # noqa: F403
from .weights_8bits import *  # noqa: F403
