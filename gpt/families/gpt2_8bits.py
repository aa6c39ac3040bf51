"""GPT-2 with its products in 8 bits (see quantize.py): before each product its rows are rounded, where they are many.
Few rows stay in 16 bits, as reading the weights is most of their work: see weights_8bits.py. What differs between
floats and integers is the MLP: see gpt2_f8.py for the floats."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from toolchain.runtime import DeviceBuffer

from ..parameters import quantize
from ..parameters.spelling import HEAD, HEAD_SCALE
from ..passes.layers import AttendHere
from ..passes.workspace import Workspace
from .weights_8bits import HEAD_BIAS, GPT2On8Bits

FEW = 64  # rows, which stay in 16 bits: a tile of the tensor cores has as many
WIDEST = 2048  # the most columns that layernorm_f8 and layernorm_i8 take
Product = Callable[[str], dict[str, DeviceBuffer]]  # from a product's name: its weight, scales and bias, and x's scales


class GPT2In8Bits(GPT2On8Bits):
    """The layers as the paper has them, each product in 8 bits."""

    round_rows: ClassVar[str]  # the op that rounds rows to them

    def _chunk(self, work: Workspace, rows: int, attend: AttendHere) -> bool:
        if rows <= FEW:
            return super()._chunk(work, rows, attend)
        x, narrow = work.x, work.narrow
        self.launch(
            "embedding", tokens=work.tokens, positions=work.positions, wte=self._weights["wte.weight"],
            wpe=self._weights["wpe.weight"], out=x,
        )  # fmt: skip
        for layer in range(self._config.n_layer):
            norm, product = self._layer_weights(layer), self._products(layer, work.scales)
            self._norm(work, norm("ln_1"))  # narrow (N, C), scales (N)
            self.launch(f"linear_{self.kind}", x=narrow, **product("attn.c_attn"), out=work.qkv)  # (N, 3C)
            scales = self._attended(layer, work, attend)  # of narrow (N, C), which is attention's result now
            self._add(x, narrow, product("attn.c_proj") | {"x_scales": scales})  # x (N, C)
            self._norm(work, norm("ln_2"))  # narrow (N, C), scales (N)
            self._mlp(work, layer, product)  # x (N, C)
        return False

    def all_logits(self, work: Workspace, out: DeviceBuffer, *, ready: bool) -> None:
        """In 8 bits where there is a weight for it. Fewer rows take the embedding, which is there anyway."""
        if work.x.shape[0] <= FEW or not quantize.has_head(self._weights):
            super().all_logits(work, out, ready=ready)
            return
        self._norm(work, self._named("ln_f"))  # narrow (N, C), scales (N)
        head = {"weight": self._weights[HEAD], "weight_scales": self._weights[HEAD_SCALE]}
        self.launch(
            f"linear_{self.kind}", x=work.narrow, x_scales=work.scales, **head, bias=self._weights[HEAD_BIAS], out=out
        )  # (N, padded V)

    def _attended(self, layer: int, work: Workspace, attend: AttendHere) -> DeviceBuffer:
        """Makes attention's result in work.narrow (N, C), and returns its scales (N)."""
        attend(layer, work)  # work.attended (N, C)
        self.launch(self.round_rows, x=work.attended, out=work.narrow, scales=work.scales)
        return work.scales

    @abstractmethod
    def _mlp(self, work: Workspace, layer: int, product: Product) -> None:
        """Adds the MLP of the rounded rows in work.narrow, whose scales are in work.scales, to work.x (N, C)."""

    def _add(self, x: DeviceBuffer, rows: DeviceBuffer, product: Mapping[str, DeviceBuffer]) -> None:
        """A product that is added to x (N, C)."""
        self.launch(f"linear_residual_{self.kind}", x=rows, **product, residual=x, out=x)

    def _norm(self, work: Workspace, named: Mapping[str, DeviceBuffer]) -> None:
        """A norm whose result is rounded: x -> narrow (N, C) and scales (N)."""
        eps = self._config.eps
        if self._config.n_embd <= WIDEST:
            self.launch(f"layernorm_{self.kind}", x=work.x, **named, out=work.narrow, scales=work.scales, eps=eps)
            return
        self.launch("layernorm", x=work.x, **named, out=work.normed, eps=eps)  # (N, C)
        self.launch(self.round_rows, x=work.normed, out=work.narrow, scales=work.scales)

    def _products(self, layer: int, scales: DeviceBuffer) -> Product:
        over = self._over(layer)
        return lambda name: {"x_scales": scales, **over(name)}


class GPT2InI8(GPT2In8Bits):
    """With integers: the hidden layer is rounded row by row. Divided by one number for all texts, as that of the floats
    is, most of it would round to zero."""

    kind = "i8"
    round_rows = "quantize_rows_i8"

    def _mlp(self, work: Workspace, layer: int, product: Product) -> None:
        del layer
        self.launch("linear_gelu_i8", x=work.narrow, **product("mlp.c_fc"), out=work.hidden)  # (N, 4C)
        self.launch(self.round_rows, x=work.hidden, out=work.wide, scales=work.scales)  # (N, 4C), (N)
        self._add(work.x, work.wide, product("mlp.c_proj"))
