"""How far one more example moves a private step."""

from __future__ import annotations

from typing import Any

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import PrivacySpec
from consilium_client.models import Inputs, model_of
from consilium_client.privacy.dp_sgd import Mechanism, train_privately
from numpy.typing import NDArray

NORM = 0.5  # that a gradient is clipped to


def moved_by_the_last(spec: TaskSpec, inputs: Inputs, labels: NDArray[Any]) -> float:
    """With the batch of all examples, and noise next to none."""
    privacy, base = PrivacySpec(epsilon=8, max_grad_norm=NORM), model_of(spec).initial(0)
    without, with_it = (
        train_privately(spec, privacy, Mechanism(1e-9, 1.0, 1), base, inputs[:rows], labels[:rows]).astype(np.float64)
        for rows in (len(labels) - 1, len(labels))
    )
    return float(np.linalg.norm(with_it - without))
