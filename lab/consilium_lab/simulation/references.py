"""Trainings beside a simulation: on all rows in one place, by plain FedAvg, and by each hospital alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import Examples

from consilium_lab.demo.references import Metrics, fedavg, trained_alone, trained_pooled
from consilium_lab.pages import GREEN, MUTED, ORANGE, Line


@dataclass(frozen=True)
class References:
    """Metrics on all voters' rows. `averaged`: of plain FedAvg, unrounded. `alone`: by hospital."""

    pooled: Metrics
    averaged: Metrics
    alone: Mapping[str, Metrics]

    @property
    def alone_mean(self) -> Metrics:
        """The mean over hospitals."""
        found = list(self.alone.values())
        return {name: fmean(metrics[name] for metrics in found) for name in (found[0] if found else {})}

    @property
    def by_name(self) -> Mapping[str, Metrics]:
        """All three, by their names in words."""
        return {
            "all rows in one place": self.pooled,
            "plain FedAvg": self.averaged,
            "each hospital alone, mean": self.alone_mean,
        }

    def lines(self, metric: str) -> list[Line]:
        """The lines of a picture."""
        looks = ((GREEN, "--"), (MUTED, "-."), (ORANGE, ":"))
        named = zip(self.by_name.items(), looks, strict=True)
        return [(metrics[metric], name, *look) for (name, metrics), look in named]


NO_REFERENCES = References({}, {}, {})


def references_of(spec: TaskSpec, hospitals: Mapping[str, Examples], held_out: Examples, seed: int) -> References:
    """By the task's settings, without its noise. `held_out`: all voters' rows."""
    parts = list(hospitals.values())
    alone = {name: trained_alone(spec, part, held_out, seed) for name, part in hospitals.items()}
    averaged = fedavg(spec, parts, held_out, seed, quantised=False).history[-1]
    return References(trained_pooled(spec, parts, held_out, seed), averaged, alone)
