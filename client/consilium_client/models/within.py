"""Training within a task's basis, on the device of the module.

Only public folds need the same bits everywhere (`consilium_zk.basis`). Training is each hospital's own, so torch
computes the same maps here: in single precision, by matrix products, also on a GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from consilium_chain.tasks.training_specs import TrainingSpec
from consilium_zk.basis import Basis, Blockwise, Coordinates, Hashed
from numpy.typing import NDArray
from torch import nn

from consilium_client.models import require_finite
from consilium_client.models.steps import stepper
from consilium_client.models.torch_parameters import trainable


class _Map(ABC):
    """A basis' linear map for a list of tensors, the trained ones in their order."""

    @abstractmethod
    def gathered(self, gradients: Sequence[torch.Tensor]) -> torch.Tensor:
        """float32 (k,), from a gradient for each tensor."""

    @abstractmethod
    def spread(self, moved: torch.Tensor, number: int) -> torch.Tensor:
        """How far one tensor's values move, float32 (its size,), from coordinates float32 (k,)."""


class _ByBlocks(_Map):
    def __init__(self, basis: Blockwise, sizes: Sequence[int], device: torch.device) -> None:
        self._size, self._device, self._factor = basis.size, device, basis.factor
        ends = np.cumsum(sizes)
        self._parts: list[list[tuple[slice, slice, torch.Tensor | None]]] = [[] for _ in sizes]
        for part in basis.parts:
            number = int(np.searchsorted(ends, part.first, side="right"))
            first = part.first - int(ends[number]) + sizes[number]
            matrix = None if part.matrix is None else torch.from_numpy(part.matrix).float().to(device)
            of_tensor, of_all = slice(first, first + part.values), slice(part.offset, part.offset + part.size)
            self._parts[number].append((of_tensor, of_all, matrix))

    def gathered(self, gradients: Sequence[torch.Tensor]) -> torch.Tensor:
        found = torch.empty(self._size, device=self._device)
        for gradient, parts in zip(gradients, self._parts, strict=True):
            flat = gradient.reshape(-1)
            for of_tensor, of_all, matrix in parts:
                own = flat[of_tensor]
                if matrix is not None:
                    own = (own.view(-1, matrix.shape[1]) @ matrix.T).mul_(self._factor).view(-1)
                found[of_all] = own
        return found

    def spread(self, moved: torch.Tensor, number: int) -> torch.Tensor:
        found = []
        for _, of_all, matrix in self._parts[number]:
            own = moved[of_all]
            if matrix is not None:
                own = (own.view(-1, len(matrix)) @ matrix).mul_(self._factor).view(-1)
            found.append(own)
        return torch.cat(found)


class _ByHash(_Map):
    def __init__(self, basis: Hashed, sizes: Sequence[int], device: torch.device) -> None:
        indices, against = basis.drawn
        self._size = basis.size
        self._indices = torch.split(torch.from_numpy(indices).to(device), list(sizes))
        self._signs = torch.split(
            torch.from_numpy(np.where(against, np.float32(-1), np.float32(1))).to(device), list(sizes)
        )

    def gathered(self, gradients: Sequence[torch.Tensor]) -> torch.Tensor:
        found = torch.zeros(self._size, dtype=torch.float64, device=gradients[0].device)
        for gradient, indices, signs in zip(gradients, self._indices, self._signs, strict=True):
            found += torch.bincount(indices, (gradient.reshape(-1) * signs).double(), self._size)
        return found.float()

    def spread(self, moved: torch.Tensor, number: int) -> torch.Tensor:
        return moved[self._indices[number]] * self._signs[number]


def _map(basis: Basis, sizes: Sequence[int], device: torch.device) -> _Map:
    if isinstance(basis, Blockwise):
        return _ByBlocks(basis, sizes, device)
    if isinstance(basis, Hashed):
        return _ByHash(basis, sizes, device)
    raise TypeError(f"no training moves a model within {type(basis).__name__}")


class Within:
    """Moves a module from where it is, within a basis, by the task's optimiser on the coordinates, which begin at zero.
    Weight decay and the proximal term both pull them back to it.
    """

    def __init__(
        self, module: nn.Module, basis: Basis, settings: TrainingSpec, correction: NDArray[np.float32] | None = None
    ) -> None:
        self._tensors = trainable(module)
        self._base = [one.detach().clone() for one in self._tensors]
        device = self._base[0].device
        self._map = _map(basis, [one.numel() for one in self._base], device)
        self._moved = nn.Parameter(torch.zeros(basis.size, device=device))
        self._step = stepper([self._moved], settings, correction)

    def step(self) -> None:
        """One step from the gradients that the module's parameters have."""
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in self._tensors]
        self._moved.grad = self._map.gathered(gradients)
        self._step()
        self._show()

    def _show(self) -> None:
        """Moves the module to the coordinates."""
        moved = self._moved.detach()
        with torch.no_grad():
            for number, (into, base) in enumerate(zip(self._tensors, self._base, strict=True)):
                torch.add(base, self._map.spread(moved, number).view_as(base), out=into.data)

    def now(self) -> NDArray[np.float32]:
        """The coordinates float32 (k,), to go back to."""
        return self._moved.detach().cpu().numpy().copy()

    def back(self, to: NDArray[np.float32]) -> None:
        with torch.no_grad():
            self._moved.copy_(torch.from_numpy(to))
        self._show()

    def found(self) -> Coordinates:
        """float64 (k,). Raises UpdateNotFinite."""
        found = self._moved.detach().double().cpu().numpy().copy()
        require_finite("trained coordinates", found)
        return found
