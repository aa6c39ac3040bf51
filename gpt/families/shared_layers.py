"""The layers of one rank of several: what is alike in every family (see share.py)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from toolchain.runtime import DeviceBuffer

from ..parameters.share import Share
from ..passes.layers import Launch, Layers
from ..passes.plan import ModelPlan
from ..passes.workspace import Workspace


class SharedLayers(Layers):
    """The plan's config has the rank's heads and hidden layer; embeddings and norms are whole. Stands before a family's
    layers among the bases of a class."""

    def __init__(
        self, launch: Launch, weights: Mapping[str, DeviceBuffer], plan: ModelPlan, dtype: str, share: Share
    ) -> None:
        super().__init__(launch, weights, plan, dtype)
        self._share = share

    @abstractmethod
    def _output_weight(self) -> DeviceBuffer:
        """Those of this rank's tokens: (padded V / R, C)."""

    def logits(self, x: DeviceBuffer, normed: DeviceBuffer, out: DeviceBuffer, *, ready: bool) -> None:
        """Those of this rank's tokens: (M, C) -> (M, padded V / R)."""
        del x
        assert ready, "the last sum over the ranks also norms"
        self.launch("logits", x=normed, weight=self._output_weight(), out=out)

    def next_token(
        self, logits: DeviceBuffer, parts: tuple[DeviceBuffer, DeviceBuffer], tokens: DeviceBuffer,
        positions: DeviceBuffer,
    ) -> None:  # fmt: skip
        values, indices = parts
        self.launch("argmax_parts", x=logits, values=values, indices=indices)
        self._choose(self._share.likeliest(logits.shape[0], 0), tokens, positions)

    def choose(
        self, parts: tuple[DeviceBuffer, DeviceBuffer], tokens: DeviceBuffer, positions: DeviceBuffer
    ) -> None:  # fmt: skip
        rows, count = parts[0].shape
        self._choose(self._share.likeliest(rows, count), tokens, positions)

    def _choose(
        self, parts: tuple[DeviceBuffer, DeviceBuffer], tokens: DeviceBuffer, positions: DeviceBuffer
    ) -> None:  # fmt: skip
        """`parts`: those of all ranks."""
        values, indices = parts
        self.launch(
            "next_token_of_ranks", values=values, indices=indices, tokens=tokens, positions=positions,
            width=self._share.vocabulary, **self._share.arguments,
        )  # fmt: skip

    def _own_tokens(self, embedding: DeviceBuffer) -> DeviceBuffer:
        """The rows of an embedding (padded V, C) that are the output weights of this rank's tokens."""
        first, count = self._share.tokens.start, self._share.vocabulary
        return embedding.slice(0, first, first + count)

    def _parts(self, turn: int, rows: int) -> tuple[DeviceBuffer, DeviceBuffer]:
        """Where all ranks put their parts of a sum, (R, N, C), and where this one does, (N, C)."""
        parts = self._share.part(turn, rows)
        return parts, parts.select(0, self._share.rank)

    def _add_parts(self, op: str, work: Workspace, parts: DeviceBuffer, **vectors: DeviceBuffer) -> None:
        """Adds all ranks' parts to x, and norms the sum."""
        self.launch(
            op, parts=parts, **vectors, x=work.x, out=work.normed, eps=self._config.eps, **self._share.arguments
        )  # fmt: skip
