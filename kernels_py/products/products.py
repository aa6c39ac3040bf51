"""The parts that matrix products share: what their skeletons and kernels call.

A skeleton is a function that holds the order of tiles and the loop over K. It takes the rest as functions: a prologue,
which reads what it can before the loop, and an epilogue, which turns the product into the result. A kernel is a call of
a skeleton that names its parts. The parts have the names of those in kernels_mlir/products.mlir.

A tile of the result has BM rows and BN columns; K is walked in steps of BK. Results add up in f32.
"""

from __future__ import annotations

import cuda.tile as ct

Int = ct.Constant[int]
Bool = ct.Constant[bool]
ZERO = ct.PaddingMode.ZERO

# sqrt(2/pi) (x + 0.044715 x^3) of x = 2h is h (LINEAR + CUBIC h^2)
LINEAR = 2 * 0.7978845608028654
CUBIC = 8 * 0.7978845608028654 * 0.044715


def nothing(*_):
    """For a hole that a kernel leaves empty."""


def tile_place(tile, m_tiles, n_tiles, GROUP):
    """Row and column of a tile. GROUP rows of tiles are made at a time, column by column: tiles made at the same time
    share their inputs in the L2 cache."""
    if GROUP == 1:  # one division instead of three, which every block does before its first load
        return tile // n_tiles, tile % n_tiles
    span = GROUP * n_tiles
    first = tile // span * GROUP
    rows = ct.minimum(m_tiles - first, GROUP)
    return first + tile % span % rows, tile % span // rows


def load(array, index, shape):
    """A tile; zeros past the array's end."""
    return ct.load(array, index=index, shape=shape, padding_mode=ZERO)


def load_directly(array, index, shape):
    """The same without the copy engine, for small tiles."""
    return ct.load(array, index=index, shape=shape, padding_mode=ZERO, allow_tma=False)


def store(array, index, value):
    ct.store(array, index=index, tile=value.astype(array.dtype))


def store_directly(array, index, value):
    ct.store(array, index=index, tile=value.astype(array.dtype), allow_tma=False)


def operand(tile, TF32):
    """A tile as the tensor cores take it."""
    return tile.astype(ct.tfloat32) if TF32 else tile


def step(x, weight, m, n, k, acc, BM, BN, BK, TF32):
    """One step of K."""
    a, b = load(x, (m, k), (BM, BK)), load(weight, (k, n), (BK, BN))
    return ct.mma(operand(a, TF32), operand(b, TF32), acc)


def product(x, weight, m, n, BM, BN, BK, TF32):
    """The f32 tile (m, n) of x @ weight."""
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.cdiv(x.shape[1], BK)):
        acc = step(x, weight, m, n, k, acc, BM, BN, BK, TF32)
    return acc


# Prologues


def load_bias(bias, n, BN):
    """The bias of the columns of a tile, (BN,) in f32."""
    return load(bias, (n,), (BN,)).astype(ct.float32)


def bias_rows(bias):
    """Each row of a tile gets the bias of its columns: (1, BN)."""
    return bias[None, :]


def sum_of_parts(squares, m, BM):
    """The sum of squares of BM rows from its parts, four a step: past the last part there are zeros."""
    total = ct.zeros((BM,), ct.float32)
    for step in range(ct.cdiv(squares.shape[0], 4)):
        for z in ct.static_iter(range(4)):
            total += load(squares, (4 * step + z, m), (1, BM)).reshape((BM,))
    return total


def inverse_rms(sum_of_squares, width, eps):
    """1 / sqrt(sum of squares / width + eps) of each row, (BM, 1)."""
    return ct.rsqrt(sum_of_squares * (1.0 / width) + eps)[:, None]


# Epilogues


def gelu_of_half(half, storage):
    """gelu(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) of an f32 tile, given x/2: whoever scales x already does
    that in the same operation. Where the result is stored in 16 bits, the GPU's approximate tanh (to 2^-11) does."""
    inner = half * (half * half * CUBIC + LINEAR)
    if storage == ct.float32:
        return half * ct.tanh(inner) + half
    return half * ct.tanh(inner, rounding_mode=ct.RoundingMode.APPROX) + half


def gelu_of_value(x, storage):
    """gelu(x) of an f32 tile."""
    if storage == ct.float32:  # 2 % faster alone: the full tanh need not wait for the half
        half = 0.5 * x
        return half * ct.tanh(x * (x * x * (CUBIC / 8) + LINEAR / 2)) + half
    return gelu_of_half(0.5 * x, storage)


def gelu(product, half_bias, storage):
    """gelu(product + bias) from half the bias."""
    return gelu_of_half(halved(product) + half_bias, storage)


def scale_rows(product, scale, bias, factor=1.0):
    """(product * scale + bias) * factor, with one scale for each row. GELU takes a factor of 1 / 2. The compiler orders
    the code otherwise if a factor of 1 is left out."""
    return product * (scale * factor) + bias * factor


def halved(value):
    return 0.5 * value


def add_residual(value, residual):
    return value + residual.astype(ct.float32)


def add_both(sum_a, square_a, sum_b, square_b):
    return sum_a + sum_b, square_a + square_b


def row_squares(value):
    """The sum of squares of each row of an f32 tile. The plain sum beside it costs nothing and decides how the compiler
    arranges the products before it: without it they wait for one another."""
    return ct.reduce((value, value * value), 1, add_both, (0.0, 0.0))[1]


def row_squares_alone(value):
    return ct.sum(value * value, axis=1)
