"""Experts of unequal size beside equal ones, at equal training FLOPs, on five domains (after HDEE: Ersoy and others,
Heterogeneous Domain Expert Ensemble, 2025).

A domain is an institute's texts in MedQuAD. An expert foretells the next character from the six before, by an `mlp` of
one hidden layer. FLOPs of its training grow with its width, so sides with as many steps and one sum of widths cost the
same. `equal`: five of one width. `harder larger`: a small probe's loss on the domain's own held-back training texts
orders the domains before anything is tested; `easier larger`: the same the other way round. `one`: a single model of
all texts, as wide as five together. A probe's FLOPs are in no side.

Test texts of the five domains, as many of each. `own`: perplexity by character of the domain's expert. `ensemble`: of
all experts, each weighted by its likelihood of the text so far. `mean`: of all, weighted alike.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.models import Vector, model_of
from consilium_client.models.training import NUMPY, train
from numpy.typing import NDArray

from bench.client.codecs import SHARED
from bench.results_store import Skipped, figure, say, write_figure

DOMAINS = ("GARD", "GHR", "MedlinePlus", "NIDDK", "NINDS")
CHARACTERS = " abcdefghijklmnopqrstuvwxyz.,-()"  # a space for all others
CONTEXT, WIDTH, LETTERS = 6, 96, 200  # characters of a text that are foretold
WIDTHS = (32, 64, 96, 128, 160)  # unequal ones; their sum is that of five equal ones
STEPS, BATCH, SEEDS, PROBE = 2_000, 64, 3, 16
TEXTS, TESTED, HELD_BACK = 300, 60, 40  # of a domain
SIDES = ("equal", "harder larger", "easier larger", "one")
Rows = tuple[NDArray[np.float32], NDArray[np.int64]]


def measure(quick: bool) -> dict[str, Any]:
    path = SHARED / "medquad" / "medquad_qtype9.csv"
    if not path.is_file():
        raise Skipped("there is no shared/data/medquad beside this checkout")
    texts, steps = read(path), 50 if quick else STEPS
    seeds = [play(texts, seed, steps) for seed in range(1 if quick else SEEDS)]
    summary = {
        side: {
            what: [round(fmean(values), 3), round(stdev(values), 3) if len(values) > 1 else None]
            for what in seeds[0]["sides"][side]
            if isinstance(seeds[0]["sides"][side][what], float)
            for values in [[one["sides"][side][what] for one in seeds]]
        }
        for side in SIDES
    }
    return {
        "what": __doc__, "domains": DOMAINS, "width": WIDTH, "widths": WIDTHS, "steps": steps, "batch": BATCH,
        "flops_of_a_side": flops(WIDTH, steps) * len(DOMAINS), "summary": summary, "seeds": seeds,
    }  # fmt: skip


def flops(width: int, steps: int) -> int:
    """Of training: two for each weight and row forwards, and four backwards."""
    return 6 * BATCH * steps * width * len(CHARACTERS) * (CONTEXT + 1)


def read(path: Path) -> dict[str, dict[str, list[str]]]:
    """By domain its training and test texts, in the file's order."""
    found: dict[str, dict[str, list[str]]] = {name: {"train": [], "test": []} for name in DOMAINS}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["institute"] in found and len(row["text"]) >= CONTEXT + LETTERS:
                found[row["institute"]][row["split"]].append(row["text"])
    return found


def play(texts: Mapping[str, Mapping[str, Sequence[str]]], seed: int, steps: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    drawn = {name: [own["train"][at] for at in random.permutation(len(own["train"]))] for name, own in texts.items()}
    learnt = {name: rows_of(own[HELD_BACK : HELD_BACK + TEXTS]) for name, own in drawn.items()}
    held_back = {name: rows_of(own[:HELD_BACK]) for name, own in drawn.items()}
    tested = {
        name: rows_of([own["test"][at] for at in random.permutation(len(own["test"]))[:TESTED]])
        for name, own in texts.items()
    }
    probes = {name: trained(PROBE, rows, seed, steps // 10) for name, rows in learnt.items()}
    losses = {name: float(-np.log(chances(PROBE, probes[name], rows)).mean()) for name, rows in held_back.items()}
    order = sorted(DOMAINS, key=losses.__getitem__)  # the easiest first
    widths = {
        "equal": dict.fromkeys(DOMAINS, WIDTH), "harder larger": dict(zip(order, WIDTHS, strict=True)),
        "easier larger": dict(zip(order, reversed(WIDTHS), strict=True)),
    }  # fmt: skip
    sides: dict[str, Any] = {}
    for side, of in widths.items():
        say(f"seed {seed}: {side}")
        experts = {name: trained(width, learnt[name], seed, steps) for name, width in of.items()}
        sides[side] = {"widths": [of[name] for name in DOMAINS], **judged(of, experts, tested)}
    say(f"seed {seed}: one")
    everything = tuple(np.concatenate(part) for part in zip(*learnt.values(), strict=True))
    whole = trained(WIDTH * len(DOMAINS), (everything[0], everything[1]), seed, steps)
    found = [float(-np.log(chances(WIDTH * len(DOMAINS), whole, rows)).mean()) for rows in tested.values()]
    sides["one"] = {"own": round(float(np.exp(fmean(found))), 4)}
    return {"probe_losses": {name: round(one, 4) for name, one in losses.items()}, "sides": sides}


def rows_of(texts: Sequence[str]) -> Rows:
    """Each character after the context of each text, in order: inputs (n, context · characters), and labels."""
    codes = np.array(
        [[max(CHARACTERS.find(one), 0) for one in text[: CONTEXT + LETTERS].lower()] for text in texts]
    )  # fmt: skip
    before = np.stack([codes[:, at : at + LETTERS] for at in range(CONTEXT)], axis=2).reshape(-1, CONTEXT)
    inputs = np.eye(len(CHARACTERS), dtype=np.float32)[before].reshape(len(before), -1)
    return inputs, codes[:, CONTEXT:].reshape(-1)


def spec_of(width: int, steps: int) -> TaskSpec:
    columns = [{"name": f"c{at}", "min": 0, "max": 1} for at in range(CONTEXT * len(CHARACTERS))]
    classes = [f"class {at}" for at in range(len(CHARACTERS))]
    return TaskSpec.model_validate({
        "name": "next character", "data": {"features": columns, "label": "next", "classes": classes},
        "model": {"name": "mlp", "hidden": [width]},
        "training": {"optimizer": "adamw", "steps": steps, "batch_size": BATCH, "learning_rate": 0.002},
        "rounds": {"rounds": 9},
    })  # fmt: skip


def trained(width: int, rows: Rows, seed: int, steps: int) -> Vector:
    spec = spec_of(width, steps)
    return train(spec, model_of(spec).initial(seed), *rows, seed, device=NUMPY)


def chances(width: int, expert: Vector, rows: Rows) -> NDArray[np.float64]:
    """Of each row's own character (n,)."""
    found = model_of(spec_of(width, 1)).evaluate(expert, rows[0]).predictions
    own: NDArray[np.float64] = found[np.arange(len(rows[1])), rows[1]]
    return own


def judged(
    widths: Mapping[str, int], experts: Mapping[str, Vector], tested: Mapping[str, Rows]
) -> dict[str, float | list[float]]:
    own, ensemble, alike = list[float](), list[float](), list[float]()
    for at, rows in enumerate(tested.values()):
        likely = np.stack([chances(widths[name], experts[name], rows) for name in DOMAINS])
        likely = likely.reshape(len(DOMAINS), -1, LETTERS)
        before = np.cumsum(np.log(likely), axis=2) - np.log(likely)  # of the text so far
        weights = np.exp(before - before.max(axis=0))
        weights /= weights.sum(axis=0)
        own.append(float(-np.log(likely[at]).mean()))
        ensemble.append(float(-np.log((weights * likely).sum(axis=0)).mean()))
        alike.append(float(-np.log(likely.mean(axis=0)).mean()))
    return {
        "own_by_domain": [round(float(np.exp(one)), 4) for one in own],
        **{name: round(float(np.exp(fmean(values))), 4)
           for name, values in (("own", own), ("ensemble", ensemble), ("mean", alike))},
    }  # fmt: skip


def plot(result: dict[str, Any], folder: Path) -> None:
    drawn, (whole, parts) = figure(10, 2.8, 2)
    for at, side in enumerate(SIDES):
        name = "ensemble" if side != "one" else "own"
        value, spread = result["summary"][side][name]
        whole.barh(at, value, xerr=spread, color="#8a8f98" if side == "one" else "#2f6f9f", height=0.6)
        whole.text(0.1, at, f"{value:.3f}", va="center", color="white")
        if side != "one":
            values = [fmean(one["sides"][side]["own_by_domain"][k] for one in result["seeds"]) for k in range(5)]
            parts.plot(DOMAINS, values, "o", label=side)
    whole.set_yticks(range(len(SIDES)), SIDES)
    whole.invert_yaxis()
    whole.set_xlabel("perplexity of a character, ensemble")
    parts.set_ylabel("of the domain's expert")
    parts.legend(frameon=False, fontsize=8)
    write_figure(folder, "experts", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(side, f"perplexity {found}") for side, found in result["summary"].items()]
