"""Untrusted TOML bytes to a typed tree, with one wording of faults."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from consilium_core.visible_text import shown

Tree = TypeVar("Tree", bound=BaseModel)

MOST_BYTES = 1 << 20  # ten thousand columns of a table take half of it
MOST_PARTS = 32  # of a dotted key
MOST_OF_A_FAULT = 500  # characters
# tomllib takes quadratic time and memory in the parts of a dotted key: one of 60 kB takes gigabytes and minutes. The
# pattern is possessive, so that no text makes the search slow.
_LONG_KEY = re.compile(
    rf"""(?<![\w.-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MOST_PARTS},}}+""", re.ASCII
)


class Section(BaseModel):
    """A table of a file. Unknown keys, NaN and infinities are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def read_toml(raw: bytes, what: str, refusal: Callable[[str], Exception]) -> dict[str, Any]:
    """UTF-8 TOML as a dictionary. Raises `refusal`, whose text names `what`."""
    if len(raw) > MOST_BYTES:
        raise refusal(f"{what} has {len(raw)} bytes, more than {MOST_BYTES}: shorten it")
    try:
        text = raw.decode("utf-8")
        if _LONG_KEY.search(text):
            raise refusal(f"{what} has a dotted key of more than {MOST_PARTS} parts: write it as tables")
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise refusal(f"{what} is not UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:  # beside TOMLDecodeError: too long an integer, too deep a nesting
        raise refusal(f"{what} is not TOML: {shown(str(error), MOST_OF_A_FAULT)}") from error


def parse_toml(raw: bytes, kind: type[Tree], what: str, refusal: Callable[[str], Exception]) -> Tree:
    """UTF-8 TOML as a `kind`. Raises `refusal`, whose text names `what` and each fault with its key."""
    tree = read_toml(raw, what, refusal)
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise refusal(f"{what} is invalid: {validation_faults(error)}") from error


def own_words(message: str) -> str:
    """A fault's message, without what pydantic puts before the words of a rule of ours."""
    return message.removeprefix("Value error, ")


def validation_faults(error: ValidationError) -> str:
    """Faults with their keys; a fault of several values together has no key."""
    faults = [(".".join(map(str, fault["loc"])), own_words(fault["msg"])) for fault in error.errors()]
    return "; ".join(shown(f"{key}: {message}" if key else message, MOST_OF_A_FAULT) for key, message in faults)
