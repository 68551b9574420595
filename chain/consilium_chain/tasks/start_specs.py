"""The model that a task's first round starts from. A new way is a class here and in `consilium_client.start`."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from consilium_core.typed_toml import Section
from pydantic import Field, field_validator

MOST_ASTRAY = 1e-3  # of a sum of rounded shares from 1
MOST_PARTS = 64  # of a file of weights: half a gigabyte
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class SeedStart(Section):
    """The family's own starting parameters, drawn from the task file's hash."""

    name: Literal["seed"] = "seed"
    prevalence: list[Annotated[float, Field(gt=0, lt=1)]] | None = Field(
        default=None,
        description="public share of each class, in their order, from the literature: the last bias starts from it,"
        " and else from 0",
    )
    counted: bool = Field(
        default=False,
        description="the last biases start from the answers' shares, or an amount's mean, as round 0 counts them in all"
        " hospitals",
    )

    @field_validator("prevalence")
    @classmethod
    def _adds_up(cls, shares: list[float] | None) -> list[float] | None:
        if shares is not None and abs(math.fsum(shares) - 1) > MOST_ASTRAY:
            raise ValueError(f"the shares of the classes add up to {math.fsum(shares):g}: they must add up to 1")
        return shares

    def require_fits(self, model: str, ends_with_bias: bool, classes: int) -> None:
        """Raises ValueError unless the model and so many classes can start from these shares, if there are any."""
        if self.prevalence is None and not self.counted:
            return
        key = "counted" if self.counted else "prevalence"
        if not ends_with_bias:
            raise ValueError(f"the model {model} need not end with biases: remove {key}, and set them in its file")
        if self.prevalence is None:
            return
        if self.counted:
            raise ValueError("the start has a prevalence, and counts one too: remove one of both")
        if len(self.prevalence) != classes:
            raise ValueError(f"prevalence has {len(self.prevalence)} shares for {classes} class(es): give one for each")

    @property
    def in_words(self) -> str:
        shares = (
            "" if self.prevalence is None else f", with classes in the shares {', '.join(map(str, self.prevalence))}"
        )
        counted = ", with the answers' shares as round 0 counts them" if self.counted else ""
        return f"its family's own start, drawn from the task file's hash{shares}{counted}"


class TaskStart(Section):
    """The model of another task, which has ended. Both have the same sections `data` and `model`, and `statistics =
    "schema"`.
    """

    name: Literal["task"]
    task: Annotated[int, Field(ge=1, le=2**53)] = Field(description="its number")
    chain_id: Annotated[int, Field(ge=1, le=2**53)] = Field(description="of its chain, which is this task's own")
    contract: Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")] = Field(
        description="address of its contract, which is this task's own"
    )

    @property
    def in_words(self) -> str:
        return f"the last model of task {self.task}"


class FileStart(Section):
    """The parameters of a safetensors file in the artifact store, with the names and shapes of the model's tensors.
    `consilium artifacts put` stores one, and prints this section.
    """

    name: Literal["file"]
    parts: Annotated[list[Digest], Field(min_length=1, max_length=MOST_PARTS)] = Field(
        description="keccak256 of each 8 MiB of the file, as hexadecimal digits, in order"
    )

    @property
    def in_words(self) -> str:
        more = "" if len(self.parts) == 1 else f" and {len(self.parts) - 1} more"
        return f"a file of weights, keccak256 {self.parts[0]}{more}"

    @property
    def digests(self) -> list[bytes]:
        return [bytes.fromhex(part) for part in self.parts]


StartSpec = Annotated[SeedStart | TaskStart | FileStart, Field(discriminator="name")]
