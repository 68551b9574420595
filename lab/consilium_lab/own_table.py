"""Deals the rows of one's own table to hospitals and voters, for the simulation and for the demo alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.judging_spec import MAX_PARTICIPANTS
from consilium_client.data.examples import Examples
from consilium_client.data.mapping import Mapping
from consilium_client.data.table.reader import RawTable, encoded, read_raw
from consilium_operators.drafting import Sample, read_sample
from numpy.typing import NDArray

from consilium_lab.errors import LabError

HELD_OUT = 1 / 3  # of each hospital's rows, for the voters
MOST_SITES = MAX_PARTICIPANTS  # of a task

Rows = NDArray[np.int64]  # numbers of rows in the table, from 0


@dataclass(frozen=True)
class Dealt:
    """`hospitals`: rows to train on, by name, the largest hospital first. `voters`: held-out rows of each voter."""

    hospitals: dict[str, Rows]
    voters: list[Rows]


def sites_of(sample: Sample, column: str) -> dict[str, Rows]:
    """Rows by hospital, the largest first. Names become safe for files. Raises OperatorError, LabError (SitesWrong)."""
    by_site: dict[str, list[int]] = {}
    for row, cell in enumerate(sample.require(column)):
        if not cell:
            raise LabError(
                "SitesWrong", path=sample.path, column=column, why=f"row {row + 1} names no hospital: add it"
            )
        by_site.setdefault(cell, []).append(row)
    if not 2 <= len(by_site) <= MOST_SITES:
        why = f"it names {len(by_site)} hospitals, and 2 to {MOST_SITES} can be played: choose another column"
        raise LabError("SitesWrong", path=sample.path, column=column, why=why)
    found: dict[str, Rows] = {}
    for site in sorted(by_site, key=lambda one: (-len(by_site[one]), one)):
        found[_safe(site, found)] = np.array(by_site[site])
    return found


def _safe(site: str, taken: dict[str, Rows]) -> str:
    letters = "".join(one for one in unicodedata.normalize("NFKD", site) if not unicodedata.combining(one))
    name = re.sub(r"[^A-Za-z0-9]+", "-", letters).strip("-")[:30]
    name = f"hospital-{name}" if not name or name.isdigit() else name
    return name if name not in taken else f"{name}-{len(taken) + 1}"


def evenly(labels: NDArray[np.int64], hospitals: int) -> dict[str, Rows]:
    """Rows in turn, class by class, for a table that names no hospital. Raises LabError (DemoTooManyParties)."""
    at_most = min(MOST_SITES, len(labels))
    if not 1 <= hospitals <= at_most:
        raise LabError("DemoTooManyParties", who="hospitals", asked=hospitals, at_most=at_most)
    order = np.argsort(labels, kind="stable")
    return {f"hospital-{number + 1}": np.sort(order[number::hospitals]) for number in range(hospitals)}


def deal(sites: dict[str, Rows], labels: NDArray[np.int64], voters: int, seed: int) -> Dealt:
    """Holds out a third of each hospital's rows, class by class, and deals them to the voters in turn.

    `labels` int64 (n,), of the whole table. Raises LabError (DemoTooManyParties, RowsTooFew).
    """
    random = np.random.default_rng(seed)
    kept: dict[str, Rows] = {}
    out: list[Rows] = []
    for name, rows in sites.items():
        piles = [random.permutation(rows[labels[rows] == label]) for label in np.unique(labels[rows])]
        cuts = [round(HELD_OUT * len(pile)) for pile in piles]
        kept[name] = np.sort(np.concatenate([pile[cut:] for pile, cut in zip(piles, cuts, strict=True)]))
        out += [pile[:cut] for pile, cut in zip(piles, cuts, strict=True)]
    return Dealt(kept, in_turn(np.concatenate(out), labels, voters))


def in_turn(rows: Rows, labels: NDArray[np.int64], voters: int) -> list[Rows]:
    """Row by row, class by class, so that every voter gets rows of two classes and of each hospital."""
    of_class: Sequence[Rows] = [rows[labels[rows] == label] for label in np.unique(labels[rows])]
    at_most = sorted(len(part) for part in of_class)[-2] if len(of_class) > 1 else 0
    if at_most == 0:
        raise LabError("RowsTooFew")
    if not 1 <= voters <= at_most:
        raise LabError("DemoTooManyParties", who="voters", asked=voters, at_most=at_most)
    # A class continues where the class before it ended, so that the voters' row counts differ by at most one.
    starts = np.cumsum([0, *map(len, of_class)])
    return [
        np.concatenate(
            [part[(voter - start) % voters :: voters] for part, start in zip(of_class, starts, strict=False)]
        )
        for voter in range(voters)
    ]


@dataclass(frozen=True)
class OwnTable:
    """A table as read by a task's schema, and its rows as they are dealt."""

    schema: TableSchema
    table: RawTable
    dealt: Dealt

    def examples(self) -> tuple[dict[str, Examples], dict[str, Examples]]:
        """The hospitals' and the voters' examples, by name."""
        whole = encoded(self.table, self.schema)

        def part(rows: Rows) -> Examples:
            return whole.chosen(np.isin(np.arange(whole.rows), rows))

        voters = {f"voter-{number}": part(rows) for number, rows in enumerate(self.dealt.voters, 1)}
        return {name: part(rows) for name, rows in self.dealt.hospitals.items()}, voters


def own_table(
    path: Path, schema: TableSchema, mapping: Mapping | None, sites: str | int, voters: int, seed: int
) -> OwnTable:
    """`sites`: the column that names the hospital, or the number of hospitals to deal the rows to.

    Raises DataError, OperatorError, LabError.
    """
    table = read_raw(path, schema, mapping)
    by_site = sites_of(read_sample(path), sites) if isinstance(sites, str) else evenly(table.labels, sites)
    return OwnTable(schema, table, deal(by_site, table.labels, voters, seed))
