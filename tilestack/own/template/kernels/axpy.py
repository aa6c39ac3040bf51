"""out = alpha x + y: a kernel in cuTile Python, how it is launched, and what it should compute."""

import cuda.tile as ct

import tilestack as ts

TILE = 256


@ct.kernel
def axpy(x, y, out, alpha, TILE: ct.Constant[int]):
    # A block makes 1 x TILE elements. What a load reads beyond the array is 0; what a store writes there is dropped.
    place = (ct.bid(0), ct.bid(1))
    a = ct.load(x, index=place, shape=(1, TILE), padding_mode=ct.PaddingMode.ZERO)
    b = ct.load(y, index=place, shape=(1, TILE), padding_mode=ct.PaddingMode.ZERO)
    made = alpha * ct.astype(a, ct.float32) + ct.astype(b, ct.float32)
    ct.store(out, index=place, tile=ct.astype(made, out.dtype))


def launch(x, y, alpha, out, on):
    """x, y, out: (M, N), of one dtype. `on`: "cpu" for the interpreter, "cuda:0" for a GPU."""
    rows, columns = out.shape
    ts.load(axpy)[rows, -(-columns // TILE)](x, y, out, alpha, TILE=TILE, on=on)


def reference(x, y, alpha):
    """In numpy. It is called with float64, which is taken as exact, and with the dtype of the kernel."""
    return x.dtype.type(alpha) * x + y
