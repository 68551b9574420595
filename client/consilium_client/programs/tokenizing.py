"""A program's tokens of texts, by its own tokenizer: a `tokenizer.json` of Hugging Face's, data from strangers.

Only the process that computes programs reads it: its rules are patterns, which can be made to take for ever.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from consilium_chain.tasks.model_specs import MOST_TOKEN
from numpy.typing import NDArray

from consilium_client.errors import ModelError
from consilium_client.programs.errors import ProgramError


def require_library() -> Any:
    """The class that reads tokenizers. Raises ModelError (ModelNotInstalled)."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # read by the library, which else starts threads of its own
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ModelError("ModelNotInstalled", model="a program of texts", package="tokenizers") from error
    return Tokenizer


def tokens_of(raw: bytes, texts: Sequence[str], length: int, padding: int) -> NDArray[np.int64]:
    """int64 (n, length): longer texts are cut off, shorter ones filled up. `raw`: the tokenizer's file.

    Raises ModelError (ModelNotInstalled), ProgramError (TokenizerUnusable).
    """
    library = require_library()
    try:
        tokenizer = library.from_str(raw.decode())
        tokenizer.enable_truncation(length)
        tokenizer.enable_padding(length=length, pad_id=padding)
        found = [one.ids for one in tokenizer.encode_batch(list(texts))]
    except Exception as error:  # of the library: it raises no other kind
        raise ProgramError("TokenizerUnusable", why=f"{error}"[:200] or type(error).__name__) from error
    if any(len(one) != length or max(one) > MOST_TOKEN for one in found):
        raise ProgramError("TokenizerUnusable", why=f"it does not give {length} tokens up to {MOST_TOKEN}")
    return np.array(found, np.int64).reshape(len(found), length)


def packed(texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Texts as arrays: their UTF-8 bytes, uint8 (all bytes,), and each one's number of bytes, int64 (n,)."""
    raw = [one.encode() for one in texts]
    together = np.frombuffer(b"".join(raw), np.uint8)
    return {"texts": together, "lengths": np.array([len(one) for one in raw], np.int64)}


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    """The texts of `packed`."""
    ends = np.cumsum(arrays["lengths"])
    whole = arrays["texts"].tobytes()
    return [whole[end - size : end].decode() for end, size in zip(ends, arrays["lengths"], strict=True)]
