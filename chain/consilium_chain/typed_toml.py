"""TOML bytes of any origin to a typed tree, with one wording for what is wrong with them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

Tree = TypeVar("Tree", bound=BaseModel)


class Section(BaseModel):
    """A table of a file: knows all its keys, and numbers that are numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def parse_toml(raw: bytes, kind: type[Tree], what: str, refusal: Callable[[str], Exception]) -> Tree:
    """UTF-8 TOML as a `kind`. Raises `refusal` about `what`, with every fault and where it stands."""
    try:
        tree = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise refusal(f"{what} is not UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:  # beside TOMLDecodeError: too long an integer, too deep a nesting
        raise refusal(f"{what} is not TOML: {error}") from error
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise refusal(f"{what} does not hold: {_faults(error)}") from error


def _faults(error: ValidationError) -> str:
    """A fault of several values together stands at no one place."""
    places = [(".".join(map(str, fault["loc"])), fault["msg"]) for fault in error.errors()]
    return "; ".join(f"{place}: {message}" if place else message for place, message in places)
