"""out[n] = wte[tokens[n]] + wpe[positions[n]]"""

from __future__ import annotations

import cuda.tile as ct

ConstInt = ct.Constant[int]


@ct.kernel
def embedding(tokens, positions, wte, wpe, out, BC: ConstInt):
    """One block makes BC columns of one token's row. The caller has checked that the indices are in range."""
    n, j = ct.bid(0), ct.bid(1)
    token = ct.load(tokens, index=(n,), shape=(1,)).item()
    position = ct.load(positions, index=(n,), shape=(1,)).item()
    word = ct.load(wte, index=(token, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO)
    place = ct.load(wpe, index=(position, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO)
    total = word.astype(ct.float32) + place.astype(ct.float32)
    ct.store(out, index=(n, j), tile=total.astype(out.dtype))


@ct.kernel
def embedding_rows(tokens, positions, wte, wpe, out, R: ConstInt, BC: ConstInt):
    """One block makes BC columns of R tokens' rows. Behind the last token it reads row 0, and stores nothing."""
    n, j = ct.bid(0), ct.bid(1)
    token = ct.load(tokens, index=(n,), shape=(R,), padding_mode=ct.PaddingMode.ZERO)
    position = ct.load(positions, index=(n,), shape=(R,), padding_mode=ct.PaddingMode.ZERO)
    column = j * BC + ct.arange(BC, dtype=ct.int32)
    word = ct.gather(wte, (token[:, None], column[None, :]), padding_value=0)
    place = ct.gather(wpe, (position[:, None], column[None, :]), padding_value=0)
    total = word.astype(ct.float32) + place.astype(ct.float32)
    ct.store(out, index=(n, j), tile=total.astype(out.dtype), allow_tma=False)


def store_squares(squares, n, value, R):
    """All of a row's squares are its first part."""
    ct.store(squares, index=(0, n), tile=value.reshape((1, R)), allow_tma=False)
    for z in range(1, squares.shape[0]):
        ct.store(squares, index=(z, n), tile=ct.zeros((1, R), ct.float32), allow_tma=False)


@ct.kernel
def embedding_centred(tokens, positions, wte, wpe, out, squares, BC: ConstInt):
    """One block makes one token's row in tiles of BC columns, in two passes: the mean, and the rest."""
    n = ct.bid(0)
    width = out.shape[1]
    token = ct.load(tokens, index=(n,), shape=(1,)).item()
    position = ct.load(positions, index=(n,), shape=(1,)).item()
    sums = ct.zeros((1, BC), ct.float32)
    for j in range(ct.cdiv(width, BC)):
        word = ct.load(wte, index=(token, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO)
        place = ct.load(wpe, index=(position, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO)
        sums += word.astype(ct.float32) + place.astype(ct.float32)
    mean = ct.sum(sums, axis=1, keepdims=True) / width
    total = ct.zeros((1, BC), ct.float32)
    for j in range(ct.cdiv(width, BC)):
        word = ct.load(wte, index=(token, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO)
        place = ct.load(wpe, index=(position, j), shape=(1, BC), padding_mode=ct.PaddingMode.ZERO)
        # Columns past the width were padded with zeros, which are off the mean: they must not count.
        inside = (j * BC + ct.arange(BC, dtype=ct.int32)) < width
        centred = ct.where(inside[None, :], word.astype(ct.float32) + place.astype(ct.float32) - mean, 0.0)
        total += centred * centred
        ct.store(out, index=(n, j), tile=centred.astype(out.dtype))
    store_squares(squares, n, ct.sum(total, axis=1), 1)


@ct.kernel
def embedding_centred_rows(tokens, positions, wte, wpe, out, squares, R: ConstInt, BC: ConstInt):
    """One block makes R tokens' rows of at most BC columns, which stay in registers: see embedding_rows."""
    n = ct.bid(0)
    width = out.shape[1]
    token = ct.load(tokens, index=(n,), shape=(R,), padding_mode=ct.PaddingMode.ZERO)
    position = ct.load(positions, index=(n,), shape=(R,), padding_mode=ct.PaddingMode.ZERO)
    column = ct.arange(BC, dtype=ct.int32)
    word = ct.gather(wte, (token[:, None], column[None, :]), padding_value=0)
    place = ct.gather(wpe, (position[:, None], column[None, :]), padding_value=0)
    total = word.astype(ct.float32) + place.astype(ct.float32)
    mean = ct.sum(total, axis=1, keepdims=True) / width
    centred = ct.where((column < width)[None, :], total - mean, 0.0)
    ct.store(out, index=(n, 0), tile=centred.astype(out.dtype), allow_tma=False)
    store_squares(squares, n, ct.sum(centred * centred, axis=1), R)
