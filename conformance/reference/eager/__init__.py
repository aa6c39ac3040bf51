"""Every op as an eager framework computes it in a dtype. A kernel's error is compared with the error of this.

Each framework op computes in f32 and rounds its result to the dtype. Matrix products accumulate in f32; under tf32
their inputs are rounded to tf32 first. `dtype` is an entry's: f32, tf32, f16 or bf16. There is a module for each family
of ops, named as that of its cases.
"""

from .cache_f8 import *  # noqa: F403
from .causal_attention import *  # noqa: F403
from .collectives import *  # noqa: F403
from .decode import *  # noqa: F403
from .grouped import *  # noqa: F403
from .paged import *  # noqa: F403
from .products import *  # noqa: F403
from .rms_products import *  # noqa: F403
from .rounding import *  # noqa: F403
from .rows import *  # noqa: F403
from .scaled import *  # noqa: F403
from .tokens import *  # noqa: F403
from .weights_8bits import *  # noqa: F403
