"""Six programs in the real demo: real nodes train each in masked rounds, and its updates verify. One at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import consilium
import pytest
import torch
from demo_driver import Demo, assert_sound
from monai.networks.nets.unet import UNet
from program_modules import monais_resnet, others_resnet
from text_programs import letters, llama
from torch import nn

pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]

SHARED = Path(__file__).parents[3] / "shared" / "data"
FEW = ("--hospitals", "3", "--voters", "2", "--rounds", "2")


class OfVolumes(nn.Module):
    """An image as a volume of 4 × 16 × 16 voxels, and the mean of its voxels' logits."""

    def __init__(self) -> None:
        super().__init__()
        self.voxels = UNet(spatial_dims=3, in_channels=1, out_channels=1, channels=(4, 8, 8), strides=(2, 2))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        volumes = nn.functional.pad(images, (2, 2, 2, 2)).reshape(-1, 1, 4, 16, 16)
        logits: torch.Tensor = self.voxels(volumes).flatten(1).mean(dim=1, keepdim=True)
        return logits


class OfLines(nn.Module):
    """An image's lines, one after the other, by an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = nn.LSTM(28, 8, batch_first=True)
        self.last = nn.Linear(8, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.lines(images.squeeze(1))[0][:, -1])
        return logits


def of_table() -> nn.Module:
    return nn.Sequential(nn.Linear(30, 8), nn.BatchNorm1d(8), nn.SiLU(), nn.Dropout(0.1), nn.Linear(8, 1))


@dataclass(frozen=True)
class Case:
    """`least`: of the final accuracy, far above an unsound model's; of texts that of the next token."""

    make: Callable[[], nn.Module]
    data: str
    example: torch.Tensor
    export: dict[str, Any]
    least: float = 0.5


IMAGES, TOKENS = torch.zeros(2, 1, 28, 28), torch.randint(1, 257, (3, 48))
CASES = {
    "own layers": Case(of_table, "wdbc", torch.zeros(2, 30), {}, 0.8),
    "LSTM": Case(OfLines, "pneumonia", IMAGES, {}),
    "MONAI's ResNet-18": Case(monais_resnet, "pneumonia", IMAGES, {}),
    "MONAI's UNet in three dimensions": Case(OfVolumes, "pneumonia", IMAGES, {}),
    "transformers' ResNet": Case(partial(others_resnet, 1), "pneumonia", IMAGES, {"outputs": "logits"}),
    "transformers' Llama with peft's LoRA": Case(
        llama, "medquad-texts", TOKENS, {"outputs": "logits", "tokenizer": letters()}, 0.01
    ),
}
FOLDERS = {"pneumonia": "pneumoniamnist", "medquad-texts": "medquad"}


@pytest.mark.parametrize("name", CASES)
def test_a_program_trains_in_masked_rounds_of_real_nodes(demo: Demo, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    where: tuple[str, ...] = ()
    if case.data in FOLDERS:
        if not (SHARED / FOLDERS[case.data]).is_dir():
            pytest.skip(f"there is no {SHARED / FOLDERS[case.data]}")
        where = ("--data-dir", str(SHARED / FOLDERS[case.data]))
    torch.manual_seed(1)
    consilium.export(case.make(), case.example, tmp_path / "model", **case.export)
    run = demo("--data", case.data, *where, "--program", str(tmp_path / "model"), *FEW)
    assert_sound(run)
    assert [r["outcome"] for r in run.report["rounds"]] == ["settled"] * 3
    assert all(cohort["sum_verified_on_chain"] for r in run.report["rounds"] for cohort in r["cohorts"])
    assert run.report["final_metric"] > case.least
