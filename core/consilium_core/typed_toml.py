"""TOML bytes of any origin to a typed tree, with one wording for what is wrong with them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from consilium_core.visible_text import shown

Tree = TypeVar("Tree", bound=BaseModel)

MOST_BYTES = 1 << 20  # ten thousand columns of a table take half of it
MOST_PARTS = 32  # of a dotted key
MOST_OF_A_FAULT = 500  # characters
# tomllib looks at each part of a dotted key once for each other part, and keeps all beginnings of the key: one of 60 kB
# takes gigabytes and minutes. Possessive, so that no text makes the search slow.
_LONG_KEY = re.compile(
    rf"""(?<![\w.-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MOST_PARTS},}}+""", re.ASCII
)


class Section(BaseModel):
    """A table of a file: knows all its keys, and numbers that are numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def parse_toml(raw: bytes, kind: type[Tree], what: str, refusal: Callable[[str], Exception]) -> Tree:
    """UTF-8 TOML as a `kind`. Raises `refusal` about `what`, with every fault and where it stands."""
    if len(raw) > MOST_BYTES:
        raise refusal(f"{what} has {len(raw)} bytes: make it {MOST_BYTES} at most")
    try:
        text = raw.decode("utf-8")
        if _LONG_KEY.search(text):
            raise refusal(f"{what} has a key of more than {MOST_PARTS} parts: write tables out")
        tree = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise refusal(f"{what} is not UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:  # beside TOMLDecodeError: too long an integer, too deep a nesting
        raise refusal(f"{what} is not TOML: {shown(str(error), MOST_OF_A_FAULT)}") from error
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise refusal(f"{what} does not hold: {_faults(error)}") from error


def _faults(error: ValidationError) -> str:
    """A fault of several values together stands at no one place. Keys and values of a stranger's are told visibly."""
    places = [(".".join(map(str, fault["loc"])), fault["msg"]) for fault in error.errors()]
    return "; ".join(shown(f"{place}: {message}" if place else message, MOST_OF_A_FAULT) for place, message in places)
