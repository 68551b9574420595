"""The model that a task's first round starts from. A new way is a class here and in `consilium_client.start`."""

from __future__ import annotations

from typing import Annotated, Literal

from consilium_core.typed_toml import Section
from pydantic import Field


class SeedStart(Section):
    """The family's own starting parameters, drawn from the task file's hash."""

    name: Literal["seed"] = "seed"


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


StartSpec = Annotated[SeedStart | TaskStart, Field(discriminator="name")]
