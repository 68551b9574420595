"""Rehearses going live on a public test network, and writes what it came to.

`python -m bench.chain.testnet [--rounds N] [--block-seconds N] [--results DIR] [--keep DIR]` plays the steps of
docs/testnet.md on a local chain in the settings of bench/chain/testnet.toml, with blocks taken back in every phase:
half an hour. It writes bench/results/testnet.json and testnet.svg, and the tables of docs/testnet.md. `--page` writes
these alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from consilium_chain.tasks.task_spec import parse_task_spec
from rehearsal.play import Counted, Rehearsal, Upheaval, plan, rehearsal
from rehearsal.settings import testnet

from bench.results_store import COLOURS, figure, header, say, write_figure, write_result

ROOT = Path(__file__).resolve().parents[2]

RESULTS, PAGE = ROOT / "bench" / "results", ROOT / "docs" / "testnet.md"
# Longer than a phase with three blocks taken back, a pool that forgot everything, and a process that starts again.
WINDOWS = {"join": 900, "commit": 480, "upload": 420, "publish": 420, "score": 420, "reveal": 300}
DEPTHS = (1, 2, 3)
TOLD = {
    "joining-undone", "end-undone", "moved", "hospitals-moved", "refused", "chain-unreachable", "transaction-rejected",
    "round-failed", "not-voted", "no-ether", "superlink-failed",
}  # fmt: skip
MARK, END = "<!-- {} by bench/chain/testnet.py: from here -->", "<!-- to here -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, help="training rounds")
    parser.add_argument("--block-seconds", type=int, default=testnet()["block_seconds"])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--keep", type=Path, help="where the nodes' logs go")
    parser.add_argument("--page", action="store_true", help="write the page from the results, play nothing")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that children are ended
    if not given.page:
        before = header("python -m bench.chain.testnet")
        folder = Path(tempfile.mkdtemp(prefix="testnet-"))
        try:
            result = {**before, **measure(folder, given.rounds, given.block_seconds)}
        finally:
            if given.keep is not None:
                shutil.copytree(folder / "logs", given.keep, dirs_exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
        write_result(given.results, "testnet", result)
        plot(result, given.results)
    if given.page or given.results == RESULTS:
        write_page(read())


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "testnet.json").read_text())
    return found


def measure(folder: Path, rounds: int, block_seconds: int) -> dict[str, Any]:
    upheavals = plan(rounds, DEPTHS)
    started = time.monotonic()
    with rehearsal(folder, rounds, block_seconds, WINDOWS, load=True) as played:
        try:
            play(played, upheavals)
        except BaseException:
            write_result(folder / "logs", "cut-off", told(played, time.monotonic() - started))
            raise
        return told(played, time.monotonic() - started)


def play(played: Rehearsal, upheavals: Sequence[Upheaval], deployment_too: bool = True) -> None:
    """The steps of docs/testnet.md, one after the other."""
    step("deploy", played, lambda: played.deploy(deployment_too))
    step("give out tokens", played, played.fund)
    raw = played.task_file()
    played.write_homes(raw)
    step("propose, add to the pool", played, lambda: played.propose(raw))
    played.start_servers()
    bond = parse_task_spec(raw).money.voter_bond
    step("register voters", played, lambda: played.register_voters(bond))
    step("delegate", played, played.delegate)
    played.start_hospitals()
    patience = 2 * sum(WINDOWS.values()) * (played.rounds + 1)
    step("join, and play the rounds", played, lambda: played.play(upheavals, patience))
    step("collect, unbond, withdraw", played, played.collect)
    step("verify, reindex", played, played.verify)


def step(name: str, played: Rehearsal, act: Any) -> None:
    began = played.at
    act()
    say(f"{played.at:7.1f} s  {name}: {played.at - began:.1f} s")
    played.steps.append({"step": name, "from_s": began, "to_s": played.at})


def told(played: Rehearsal, seconds: float) -> dict[str, Any]:
    counted = list(played.counted())
    return {
        "what": f"a rehearsal on a local chain in the settings of {testnet().network.name}: {played.rounds} rounds",
        "block_seconds": played.block_seconds,
        "seconds": round(seconds, 1),
        "steps": played.steps,
        "deploy_runs": played.deploy_runs,
        "rounds": played.rounds_over(),
        "phases": played.spans,
        "upheavals": played.played,
        "base_fee_gwei": [[at, round(gwei, 3)] for at, gwei in played.fees],
        "parties": {"hospital": len(played.names("hospital")), "voter": len(played.names("voter"))},
        "paid": paid(counted),
        "failed_on_chain": [asdict(one) for one in counted if one.failed],
        "sidecars": played.sidecars(),
        "sendings": played.sendings(),
        "refused_by_provider": dict(played.provider.refused),
        "traffic": played.traffic(),
        "journal": journal(played),
        "restarts": dict(played.restarts),
        "stuck": played.stuck(),
        "books": played.books(),
    }


def journal(played: Rehearsal) -> dict[str, int]:
    """What parties told of that is not the usual course, by role."""
    found = Counter[str]()
    for line in played.lines:
        event = str(line.fields.get("event"))
        if event in TOLD:
            more = line.fields.get("error", "")
            found[f"{line.process.partition('-')[0]}: {event} {more}".strip()] += 1
    return dict(found.most_common())


def paid(counted: Sequence[Counted]) -> list[dict[str, Any]]:
    """By role and step, of transactions that did what they were for."""
    groups: dict[tuple[str, str], list[Counted]] = defaultdict(list)
    for one in counted:
        if not one.failed:
            groups[one.who.partition("-")[0], one.step].append(one)
    return [
        {
            "role": role, "step": name, "count": len(found), "parties": len({one.who for one in found}),
            "gas": round(mean(one.gas for one in found)), "most": max(one.gas for one in found),
            "all_gas": sum(one.gas for one in found), "blob_gas": sum(one.blob_gas for one in found),
            "wei": sum(one.wei + one.blob_wei for one in found),
        }
        for (role, name), found in sorted(groups.items())
    ]  # fmt: skip


def plot(result: dict[str, Any], folder: Path) -> None:
    """Phases, what was taken back, and the base fee, by the clock."""
    drawn, (above, below) = figure(10, 4.6, rows=2)
    phases = [*result["phases"]]
    labelled = set()
    for one, after in pairwise(phases):
        name = one["phase"]
        above.barh(
            one["round"], after["at"] - one["at"], left=one["at"], height=0.7, color=COLOURS.get(name, "#8a8f98"),
            label=None if name in labelled else name,
        )  # fmt: skip
        labelled.add(name)
    rounds = sorted({one["round"] for one in phases})
    for one in (one for one in result["upheavals"] if one["round"] is not None):
        above.text(
            one["at"], one["round"] + 0.42, str(one["depth"]), ha="center", fontsize=8,
            color="black" if one["returning"] else "#b22222",
        )  # fmt: skip
    above.set_yticks(rounds, [f"round {number}" for number in rounds])
    above.invert_yaxis()
    above.set_title(
        "Blocks taken back (red: their transactions were forgotten) and phases, blocks every"
        f" {result['block_seconds']} s", loc="left",
    )  # fmt: skip
    above.legend(ncols=9, fontsize=7, frameon=False, loc="lower center", bbox_to_anchor=(0.5, -0.42))
    below.step(
        [at for at, _ in result["base_fee_gwei"]], [gwei for _, gwei in result["base_fee_gwei"]], color="#2f6f9f"
    )
    below.set_ylabel("base fee, gwei")
    below.set_xlabel("seconds")
    below.set_xlim(above.get_xlim())
    write_figure(folder, "testnet", drawn)


# --- the page ------------------------------------------------------------------------------------------------------


def write_page(result: dict[str, Any]) -> None:
    """What stands between the marks of docs/testnet.md."""
    text = PAGE.read_text()
    for name, lines in tables(result).items():
        before, mark, rest = text.partition(MARK.format(name))
        if not mark:
            raise SystemExit(f"{PAGE.name} has no mark for {name}")
        _, _, after = rest.partition(END)
        text = f"{before}{mark}\n{chr(10).join(lines)}\n{END}{after}"
    PAGE.write_text(text)


def tables(result: dict[str, Any]) -> dict[str, list[str]]:
    """By the name that the page's mark has."""
    return {"budget": budget_table(result)}


WHO = {
    "deployer": "deployer", "operator": "operator", "aggregator": "aggregator", "hospital": "hospital (sponsored)",
    "voter": "voter", "delegator": "delegator",
}  # fmt: skip


def ether(gwei: float) -> str:
    value = gwei / 10**9
    return f"{value:.6f}" if value < 0.01 else f"{value:.4f}"


def budget_table(result: dict[str, Any]) -> list[str]:
    """Of one party: what its task came to in all, and at each price."""
    prices = testnet().price
    lines = [
        f"| who | gas of its whole task | {' | '.join(price.name for price in prices)} |",
        f"|---|---|{'---|' * len(prices)}",
    ]
    for role, who in WHO.items():
        rows = [row for row in result["paid"] if row["role"] == role]
        parties = result["parties"].get(role, 1)
        gas, blob_gas = (sum(row[name] for row in rows) / parties for name in ("all_gas", "blob_gas"))
        at = [ether(gas * price.gwei + blob_gas * price.blob_gwei) for price in prices]
        lines.append(f"| {who} | {gas:,.0f} | {' | '.join(at)} |")
    return lines


if __name__ == "__main__":
    main()
