"""Modules that become programs: own ones, and those of other people's libraries as installed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from consilium_client.programs.exporting import Exported, exported
from consilium_client.programs.interpreter import Interpreter
from monai.networks.nets.resnet import ResNet
from monai.networks.nets.unet import UNet
from peft import LoraConfig, inject_adapter_in_model
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, ResNetConfig, ResNetForImageClassification

from bench.client.programs import Flat, Last, resnet

ROWS = 5
IMAGES = (ROWS, 1, 28, 28)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(7, 8), nn.ReLU(inplace=True), nn.LayerNorm(8), nn.Linear(8, 3))


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, padding="same"), nn.GroupNorm(2, 6), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6, 2),
    )  # fmt: skip


def others_resnet(outputs: int = 2) -> nn.Module:
    config = ResNetConfig(
        num_channels=1, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=outputs
    )  # fmt: skip
    module: nn.Module = ResNetForImageClassification(config)
    return module


def monais_resnet() -> nn.Module:
    """ResNet-18 with a hundredth of its channels."""
    made: nn.Module = ResNet(
        "basic", [2, 2, 2, 2], [4, 8, 8, 16], spatial_dims=2, n_input_channels=1, num_classes=1, conv1_t_size=3,
        conv1_t_stride=1,
    )  # fmt: skip
    return made


def monais_unet() -> nn.Module:
    return Flat(UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8, 8), strides=(2, 2)))


def others_llama() -> nn.Module:
    config = LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, use_cache=False,
    )  # fmt: skip
    return Last(inject_adapter_in_model(LoraConfig(r=2, target_modules=["q_proj", "v_proj"]), LlamaForCausalLM(config)))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.last = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 2)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(self.layers(rows)[0][:, -1])
        return found


def transformer() -> nn.Module:
    return nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), nn.Flatten(), nn.Linear(48, 2))


class Residual(nn.Module):
    """Adds in place, and reads a view of what it added to."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found = self.first(rows)
        found += rows
        found.mul_(2)
        logits: torch.Tensor = self.last(found)
        return logits


DRAWS = torch.Generator().manual_seed(1)  # some examples round worse than others
MODULES: dict[str, tuple[Callable[[], nn.Module], torch.Tensor, str | None]] = {
    "perceptron": (perceptron, torch.randn(ROWS, 7, generator=DRAWS), None),
    "convolutions": (convolutions, torch.randn(IMAGES, generator=DRAWS), None),
    "transformers' ResNet": (others_resnet, torch.randn(IMAGES, generator=DRAWS), "logits"),
    "transformers' Llama with peft's LoRA": (others_llama, torch.randint(0, 40, (ROWS, 6), generator=DRAWS), None),
    "MONAI's ResNet-18": (resnet, torch.randn(IMAGES, generator=DRAWS), None),
    "MONAI's UNet in three dimensions": (monais_unet, torch.randn(ROWS, 1, 8, 8, 8, generator=DRAWS), None),
    "LSTM": (Recurrent, torch.randn(ROWS, 6, 4, generator=DRAWS), None),
    "transformer": (transformer, torch.randn(ROWS, 6, 8, generator=DRAWS), None),
    "in place": (Residual, torch.randn(ROWS, 4, generator=DRAWS), None),
}
MIXING = ("convolutions", "transformers' ResNet", "MONAI's ResNet-18")  # rows, by batch norms


def made(name: str) -> tuple[nn.Module, Exported, torch.Tensor, str | None]:
    torch.manual_seed(1)
    make, example, outputs = MODULES[name]
    module = make()
    return module, exported(module, example, outputs), example, outputs


def interpreted(found: Exported) -> Interpreter:
    return Interpreter(found.program, {name: torch.from_numpy(one.copy()) for name, one in found.tensors.items()})
