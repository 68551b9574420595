"""A small Llama with LoRA on MedQuAD's texts, as a program: before, alone, pooled, by plain averaging, and over rounds.

The base is trained here first, on texts of two institutes that write for patients; it and its tokenizer are the public
part. Four other institutes are the hospitals. Their held-out texts tell the perplexity of a next token, the accuracy
of its guess, and the loss in nats. As in `learning_programs`, `plain` is FedAvg of the eager module.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
from consilium_chain.tasks.data_schemas import CorpusSchema
from consilium_client.models import next_token
from consilium_client.models.metrics import accuracy, log_loss
from consilium_client.programs.tokenizing import tokens_of
from consilium_lab.demo.datasets import DemoData
from consilium_lab.demo.options import MEDQUAD_FILE
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import nn

from bench.client.learning import groups, summary
from bench.client.learning import table as table_of_learning
from bench.client.learning_programs import EPSILON, Subject, studies
from bench.results_store import Skipped, figure, say, write_figure

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "medquad"
PUBLIC, HOSPITALS = ("MedlinePlus", "SeniorHealth"), ("GARD", "GHR", "NIDDK", "NCI")
ROWS, HELD_OUT = 400, 400  # texts of each hospital, and of all
TOKENS, LENGTH = 1_024, 96
BASE_EPOCHS, BASE_BATCH, BASE_RATE = 12, 32, 0.003
ROUNDS = 6
BASE = "base.safetensors"
ADAPTED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
SECTIONS: Mapping[str, Any] = {
    "training": {"epochs": 1, "batch_size": 16, "optimizer": "adamw", "learning_rate": 0.003},
    "update": {"bits": 8, "value_range": 0.1, "clip_norm": 8.0},
}
PRIVATELY: Mapping[str, Any] = {
    "training": {"epochs": 2, "batch_size": 128, "learning_rate": 0.5},
    "update": {"bits": 16, "value_range": 1.0, "clip_norm": 8.0},
    "privacy": {"epsilon": EPSILON, "max_grad_norm": 1.0},
}


def _frame() -> pd.DataFrame:
    return pd.read_csv(FOLDER / MEDQUAD_FILE, encoding="utf-8").drop_duplicates("text")


def deal(seed: int) -> DemoData:
    generator, frame = np.random.default_rng(seed), _frame()

    def some(institute: str, split: str, count: int) -> pd.DataFrame:
        part = frame[(frame["institute"] == institute) & (frame["split"] == split)]
        return part.iloc[generator.permutation(len(part))[:count]][["text"]].reset_index(drop=True)

    held_out = pd.concat([some(name, "test", HELD_OUT // len(HOSPITALS)) for name in HOSPITALS], ignore_index=True)
    return DemoData(
        "medquad-texts", "MedQuAD", CorpusSchema(kind="corpus"), [*HOSPITALS],
        [some(name, "train", ROWS) for name in HOSPITALS], [held_out],
    )  # fmt: skip


@cache
def tokenizer() -> Any:
    """Of bytes and their most frequent pairs (BPE) in the public texts; 0 fills up."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS, special_tokens=["<none>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(_public_texts(), trainer)
    return made


def _public_texts() -> list[str]:
    frame = _frame()
    return list(frame[frame["institute"].isin(PUBLIC)]["text"])


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    made: nn.Module = LlamaForCausalLM(LlamaConfig(
        vocab_size=TOKENS, hidden_size=96, intermediate_size=256, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=4, use_cache=False, tie_word_embeddings=False,
    ))  # fmt: skip
    return made


def train_base(folder: Path) -> None:
    """Writes the public model's weights."""
    module, generator = _llama(), np.random.default_rng(0)
    texts = [text[at:] for text in _public_texts() for at in (0, len(text) // 2)]
    tokens = tokens_of(tokenizer().to_str().encode(), texts, LENGTH, 0)
    targets = next_token.targets_of(tokens, 0)
    steps = BASE_EPOCHS * -(-len(texts) // BASE_BATCH)
    optimizer = torch.optim.AdamW(module.parameters(), BASE_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, BASE_RATE, steps)
    for epoch in range(BASE_EPOCHS):
        for batch in np.array_split(generator.permutation(len(texts)), -(-len(texts) // BASE_BATCH)):
            optimizer.zero_grad()
            logits = module(torch.from_numpy(tokens[batch])).logits
            loss = next_token.loss(logits, torch.from_numpy(targets[batch]), "mean")
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        say(f"base, pass {epoch + 1}: {float(loss.detach()):.3f}")
    save_file(module.state_dict(), folder / BASE)


def module(folder: Path, private: bool) -> nn.Module:
    """`private`: adapters of rank 1 on queries and values alone."""
    from peft import LoraConfig, inject_adapter_in_model

    made = _llama()
    made.load_state_dict(load_file(folder / BASE))
    chosen = LoraConfig(r=1 if private else 4, lora_alpha=8, target_modules=[*(ADAPTED[:3:2] if private else ADAPTED)])
    adapted: nn.Module = inject_adapter_in_model(chosen, made)
    return adapted


def tested(labels: NDArray[np.int64], likely: NDArray[np.float64]) -> dict[str, float]:
    loss = log_loss(labels, likely)
    return {"perplexity": float(np.exp(loss)), "accuracy": accuracy(labels, likely), "log_loss": loss}


def texts(folder: Path) -> Subject:
    example = torch.randint(1, TOKENS, (3, LENGTH), generator=torch.Generator().manual_seed(0))
    return Subject(
        "MedQuAD texts, 4 hospitals", "Llama with LoRA", deal, partial(module, folder), example, SECTIONS, PRIVATELY,
        ROUNDS, tested, {"outputs": "logits", "tokenizer": tokenizer()}, lambda found: found.logits,
    )  # fmt: skip


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    if not FOLDER.is_dir():
        raise Skipped("there is no shared/data/medquad beside this checkout")
    what = "perplexity, accuracy and loss of the next token on held-out texts; `alone` is the mean of four models"
    with TemporaryDirectory() as folder:
        train_base(Path(folder))
        yield from studies(partial(texts, Path(folder)), quick, os.cpu_count() or 1, {"what": what, "rounds": ROUNDS})


def plot(result: dict[str, Any], folder: Path) -> None:
    """The perplexity by method: fewer is better."""
    drawn, (axis,) = figure(6.5, 3.2)
    ((model, data),) = groups(result)
    methods = summary(result, model, data)[::-1]
    for index, (_, values) in enumerate(methods):
        found = values["perplexity"]
        axis.plot([min(found), max(found)], [index, index], color="#2f6f9f", linewidth=1.2)
        axis.plot([fmean(found)], [index], "o", color="#2f6f9f")
        axis.annotate(f"{fmean(found):.1f}", (max(found), index), (6, -3), textcoords="offset points", fontsize=8)
    axis.set_yticks(range(len(methods)), [label for label, _ in methods])
    axis.margins(x=0.12)
    axis.set_title(f"{model}: {data}", loc="left")
    axis.set_xlabel("perplexity of the next token on held-out texts; lines span the seeds")
    write_figure(folder, "learning_language", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return table_of_learning(result)
