"""Small programs of texts: a language model of transformers with peft's adapters, a classifier, and a tokenizer."""

from __future__ import annotations

from pathlib import Path

import consilium
import torch
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.programs import library
from consilium_operators.weights import store_weights
from peft import LoraConfig, inject_adapter_in_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import nn
from training_driver import task_file
from transformers import LlamaConfig, LlamaForCausalLM

LENGTH = 12
CORPUS = '[data]\nkind = "corpus"\n'
CLASSES = '[data]\nkind = "text"\nlabel = "ill"\nclasses = ["no", "yes", "unknown"]\n'
EXAMPLE = torch.randint(1, 257, (3, LENGTH), generator=torch.Generator().manual_seed(2))


def letters() -> Tokenizer:
    """A token for each byte; 0 is none of them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({"<none>": 0} | {one: at for at, one in enumerate(alphabet, 1)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def llama() -> nn.Module:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=257, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, use_cache=False,
    )  # fmt: skip
    chosen = LoraConfig(r=2, target_modules=["q_proj", "v_proj"])
    made: nn.Module = inject_adapter_in_model(chosen, LlamaForCausalLM(config))
    return made


class Classes(nn.Module):
    """Three logits of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.last = nn.Embedding(257, 8), nn.Linear(8, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        known = (tokens > 0).unsqueeze(2).float()
        found: torch.Tensor = self.last((self.layers(tokens) * known).sum(dim=1) / known.sum(dim=1).clamp(min=1))
        return found


def exported_texts(folder: Path) -> Path:
    """Both programs, each in a folder of `folder`."""
    consilium.export(llama(), EXAMPLE, folder / "language", outputs="logits", tokenizer=letters())
    consilium.export(Classes(), EXAMPLE, folder / "classes", tokenizer=letters())
    return folder


def text_file(folder: Path, data: str = CORPUS, training: str = "epochs = 3", update: str = "bits = 10") -> str:
    """A task file of one of them, which is put into the store `folder`/artifacts."""
    section = store_weights(ArtifactStore(folder / "artifacts"), folder / ("language" if data == CORPUS else "classes"))
    plain = task_file(training, update).decode()
    start, end = plain.index("[data]"), plain.index("[model]")
    return plain[:start] + data + plain[end:].replace('[model]\nname = "logistic"\n', section)


def text_spec(folder: Path, data: str = CORPUS, training: str = "epochs = 3", update: str = "bits = 10") -> TaskSpec:
    spec = parse_task_spec(text_file(folder, data, training, update).encode())
    library.offer(ArtifactStore(folder / "artifacts"), spec)
    return spec
