"""Metrics by which models are judged and measured."""

from __future__ import annotations

from consilium_chain.tasks.questions import TITLES, Metric

__all__ = ["TITLES", "Metric"]
