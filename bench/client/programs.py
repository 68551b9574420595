"""Costs of a program beside the module that it was exported from: export, reading, the first step, and each step.

The modules are other people's, as installed: MONAI's ResNet-18 and three-dimensional UNet, transformers' Llama with
peft's LoRA. A step is forward, backward and SGD on one batch. Eager module and program take steps in turn, and a step's
ratio is that of two neighbours. `read`: from two files to a module, with all checks.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from consilium_client.models.weights import parse_tensors
from consilium_client.programs.exporting import exported
from consilium_client.programs.interpreter import Interpreter
from consilium_client.programs.measuring import measured
from consilium_client.programs.program import parse_program
from safetensors.numpy import save
from torch import nn

STEPS, QUICK_STEPS = 60, 3
WARM = 5
LEARNING_RATE = 0.01


@dataclass(frozen=True)
class Case:
    """`rows`: of a step."""

    name: str
    make: Callable[[], nn.Module]
    rows: Callable[[], torch.Tensor]


class Flat(nn.Module):
    """Voxels' logits as a row's."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.module(rows).flatten(1)
        return found


class Last(nn.Module):
    """The next token's logits, of the last position."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.module(tokens).logits[:, -1]
        return logits


def resnet() -> nn.Module:
    """For 28 × 28: without the first stride."""
    from monai.networks.nets.resnet import resnet18

    made: nn.Module = resnet18(spatial_dims=2, n_input_channels=1, num_classes=2, conv1_t_size=3, conv1_t_stride=1)
    return made


def unet() -> nn.Module:
    from monai.networks.nets.unet import UNet

    return Flat(UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(8, 16, 32), strides=(2, 2)))


def llama() -> nn.Module:
    from peft import LoraConfig, inject_adapter_in_model
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=4, use_cache=False,
    )  # fmt: skip
    return Last(inject_adapter_in_model(LoraConfig(r=4, target_modules=["q_proj", "v_proj"]), LlamaForCausalLM(config)))


CASES = (
    Case("MONAI ResNet-18", resnet, lambda: torch.randn(16, 1, 28, 28)),
    Case("MONAI UNet, 3-D", unet, lambda: torch.randn(2, 1, 32, 32, 32)),
    Case("Llama with LoRA", llama, lambda: torch.randint(0, 512, (16, 64))),
)


def rows_of(case: Case, device: str, precision: str, steps: int) -> dict[str, Any]:
    """One module's costs; times in seconds, of a step in milliseconds."""
    torch.manual_seed(0)
    module, rows = case.make(), case.rows()
    began = time.perf_counter()
    found = exported(module, rows[:3])
    export = time.perf_counter() - began
    weights = save(dict(found.tensors))
    began = time.perf_counter()
    program = _read(found.raw, weights, len(rows)).to(device)
    read = time.perf_counter() - began
    eager, rows = module.to(device).train(), rows.to(device)
    take = {"eager": _step(eager, rows, precision), "program": _step(program.train(), rows, precision)}
    first = _timed(take["program"], device)
    for one in take.values():
        for _ in range(WARM):
            one()
    times: dict[str, list[float]] = {name: [] for name in take}
    for at in range(steps):
        for name in sorted(take, reverse=at % 2 == 1):
            gc.collect(0)
            times[name].append(_timed(take[name], device))
    ratios = sorted(b / a for a, b in zip(times["eager"], times["program"], strict=True))
    return {
        "module": case.name, "device": _named(device), "precision": precision, "torch": torch.__version__,
        "parameters": sum(one.numel() for one in module.parameters()), "nodes": len(found.program.nodes),
        "graph_bytes": len(found.raw), "rows": len(rows), "export_seconds": round(export, 2),
        "read_seconds": round(read, 2), "first_step_seconds": round(first, 3),
        "eager_milliseconds": round(1000 * median(times["eager"]), 2),
        "program_milliseconds": round(1000 * median(times["program"]), 2), "ratio": round(median(ratios), 3),
        "ratio_quartiles": [round(ratios[len(ratios) // 4], 3), round(ratios[3 * len(ratios) // 4], 3)], "steps": steps,
    }  # fmt: skip


def _read(raw: bytes, weights: bytes, rows: int) -> Interpreter:
    program = parse_program(raw)
    measured(program, rows)
    wanted = {**{name: (shape, "float32") for name, shape in program.learnt.items()}, **program.frozen}
    return Interpreter(
        program, {name: torch.from_numpy(one.copy()) for name, one in parse_tensors(weights, wanted).items()}
    )


def _step(module: nn.Module, rows: torch.Tensor, precision: str) -> Callable[[], None]:
    optimizer = torch.optim.SGD([one for one in module.parameters() if one.requires_grad], lr=LEARNING_RATE)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(rows.device.type, torch.bfloat16, enabled=precision == "mixed"):
            loss = module(rows).float().square().mean()
        loss.backward()
        optimizer.step()

    return step


def _timed(step: Callable[[], None], device: str) -> float:
    began = time.perf_counter()
    step()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def _named(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    """On the CPU, and on a GPU where there is one; so far, after each."""
    rows: list[dict[str, Any]] = []
    for case in CASES:
        for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
            for precision in ("float32", "mixed") if device == "cuda" else ("float32",):
                rows.append(rows_of(case, device, precision, QUICK_STEPS if quick else STEPS))
                yield {"what": "a program beside the eager module that it was exported from", "rows": rows}


def plot(result: dict[str, Any], folder: Path) -> None:
    """The ratios of steps, with their quartiles."""
    from bench.results_store import figure, write_figure

    rows = result["rows"]
    drawn, (axes,) = figure(7.0, 0.5 * len(rows) + 1.2)
    for at, row in enumerate(rows):
        low, high = row["ratio_quartiles"]
        axes.plot([low, high], [-at, -at], color="#5fa3c7", linewidth=4, solid_capstyle="butt")
        axes.plot([row["ratio"]], [-at], "o", color="#2f6f9f", markersize=6)
        text = f"{row['eager_milliseconds']:.1f} → {row['program_milliseconds']:.1f} ms"
        axes.annotate(text, (max(high, 1.0), -at), (8, -3), textcoords="offset points", fontsize=8)
    axes.axvline(1.0, color="#8a8f98", linewidth=1)
    axes.set_yticks([-at for at in range(len(rows))], [_label(row) for row in rows])
    axes.set_xlabel("a step of the program, relative to the eager module's (median, quartiles)")
    axes.margins(x=0.3)
    write_figure(folder, "programs", drawn)


def _label(row: dict[str, Any]) -> str:
    return f"{row['module']}\n{row['device']}{', mixed' if row['precision'] == 'mixed' else ''}"


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            _label(row).replace("\n", ", "),
            f"export {row['export_seconds']} s, read {row['read_seconds']} s, first step {row['first_step_seconds']} s;"
            f" a step {row['eager_milliseconds']} → {row['program_milliseconds']} ms ({row['ratio']:.2f})",
        )
        for row in result["rows"]
    ]
