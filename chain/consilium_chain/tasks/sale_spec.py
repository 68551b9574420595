"""The terms by which a task's finished model may be sold: the last lines of its task file.

The chain proves the terms by the file's hash: it hashes the bytes before these lines, and then the lines, which it
writes itself from the four percentages. So the lines have one spelling, and nothing comes after them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from consilium_core.typed_toml import Section
from pydantic import Field, model_validator

from consilium_chain.errors import SpecInvalid

if TYPE_CHECKING:
    from consilium_chain.tasks.task_spec import TaskSpec

WHOLE = 100
MOST_FOR_THE_SERVER = 99  # so that the parts' holders get something
MOST_BYTES = 100_000  # of a file, which the chain reads in one transaction


class SaleSpec(Section):
    """Whole percentages of each payment for the finished model; they add up to 100."""

    server_percent: Annotated[int, Field(ge=0, le=MOST_FOR_THE_SERVER)] = Field(
        description="of each payment, to the account that serves the model"
    )
    operator_percent: Annotated[int, Field(ge=0, le=WHOLE)] = Field(
        description="of each payment, to the holders of the operator's part of the model"
    )
    trainers_percent: Annotated[int, Field(ge=0, le=WHOLE)] = Field(
        description="of each payment, to the holders of the hospitals' parts"
    )
    voters_percent: Annotated[int, Field(ge=0, le=WHOLE)] = Field(
        description="of each payment, to the holders of the voters' parts"
    )

    @model_validator(mode="after")
    def _adds_up(self) -> SaleSpec:
        total = self.server_percent + self.operator_percent + self.trainers_percent + self.voters_percent
        if total != WHOLE:
            raise ValueError(f"the four percentages add up to {total}: they must add up to {WHOLE}")
        return self

    @property
    def lines(self) -> bytes:
        """The section as the file must have it: its last bytes."""
        values = (f"{name} = {getattr(self, name)}\n" for name in SaleSpec.model_fields)
        return f"[sale]\n{''.join(values)}".encode()

    @property
    def in_words(self) -> str:
        """The terms, for a screen."""
        return (
            f"of each payment the server gets {self.server_percent} %, the operator {self.operator_percent} %, trainers"
            f" {self.trainers_percent} %, voters {self.voters_percent} %"
        )

    def require_ends(self, raw: bytes) -> None:
        """Raises SpecInvalid if the chain could not prove these terms by the hash of the file with these bytes."""
        if len(raw) > MOST_BYTES:
            raise SpecInvalid(
                f"the task file has {len(raw):,} bytes, and one with [sale] at most {MOST_BYTES:,}, which the chain"
                " reads in one transaction: shorten it, or remove [sale]"
            )
        if not raw.endswith(b"\n" + self.lines):
            lines = ", ".join(f'"{line}"' for line in self.lines.decode().splitlines())
            raise SpecInvalid(
                "the chain proves the terms of sale by the file's hash, so the file must end with exactly these lines,"
                f" each ended by one line feed (LF), without comments and other spaces: {lines}; write them so"
            )


def head_of(raw: bytes, spec: TaskSpec) -> bytes:
    """The bytes of a task file before its lines of [sale]. Raises SpecInvalid if its model cannot be sold."""
    if spec.sale is None:
        raise SpecInvalid(
            "the task file has no [sale], so its model can never be sold: propose a task whose file has it"
        )
    spec.sale.require_ends(raw)
    return raw.removesuffix(spec.sale.lines)
