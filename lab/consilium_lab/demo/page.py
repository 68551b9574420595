"""The demo's report as one HTML file."""

from __future__ import annotations

import html
from collections import defaultdict
from pathlib import Path
from typing import Any

from consilium_chain.tasks.money_spec import TOKEN
from consilium_core.units import exact_tokens

from consilium_lab.pages import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    RED,
    curve_of,
    figure_of,
    label_ends,
    percent,
    svg,
    table_of,
    tiles_of,
    write_document,
)

PHASE_COLOURS = {
    "forming": "#9fb3c8", "committing": BLUE, "uploading": "#6f9fd8", "publishing": GREEN, "drawing": "#b9c9a8",
    "scoring": ORANGE, "revealing": "#e3b27a", "disclosing": "#7f6ea3",
}  # fmt: skip


def write_page(path: Path, report: dict[str, Any]) -> None:
    """Writes the page; pictures are inline SVG."""
    parts = [
        "<h1>Consilium demo</h1>",
        f"<p class=sub>{html.escape(report['description'])}<br>"
        f"{report['hospitals']} hospitals, {report['voters']} voters, seed {report['seed']},"
        f" {report['wall_s']:.1f} s{_attacks(report)}</p>",
        _tiles(report),
        f"<p class=note>{html.escape(report['privacy'])}</p>",
        "<h2>The model, round by round</h2>",
        svg(_metric_picture(report)),
        "<h2>The money, round by round</h2>",
        svg(_money_picture(report)),
        _balances(report),
        "".join(f"<p>{html.escape(words)}</p>" for words in report["pay"]),
        "<h2>Time and gas</h2>",
        svg(_time_picture(report)),
        svg(_gas_picture(report)),
        _arena(report),
        "<h2>Rounds</h2>",
        _rounds(report),
        _refusals(report),
        _strangers(report),
        _sales(report.get("sales")),
        f"<h2>Next, with your own table</h2><pre class=wrap>{html.escape(report['next'])}</pre>",
    ]
    write_document(path, "Consilium demo", parts)


def _attacks(report: dict[str, Any]) -> str:
    attacks = [*report["attacks"], *([report["cheat"]] if report["cheat"] else [])]
    return f"; attacks: {html.escape(', '.join(attacks))}" if attacks else ""


def _tiles(report: dict[str, Any]) -> str:
    proven = [c["sum_verified_on_chain"] for r in report["rounds"] for c in r["cohorts"]]
    tiles = [
        (percent(report["final_metric"]), f"{report['metric_name']}, federated"),
        (percent(report["pooled_metric"]), "if all rows were in one place"),
        (percent(report["local_only_metric"]), "each hospital alone, mean"),
        (f"{sum(proven)} of {len(proven)}", "cohort sums proven on chain"),
        (report["conservation"]["difference"], "difference of all money, in wei"),
    ]
    return tiles_of(tiles)


def _played(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The rounds that began. A task with public statistics has no statistics round."""
    return [r for r in report["rounds"] if r["kind"] == "training" or r["outcome"] != "pending"]


def _ticks(rounds: list[dict[str, Any]]) -> list[str]:
    return ["start", *("statistics" if r["kind"] == "statistics" else f"after {r['index']}" for r in rounds)]


def _metric_picture(report: dict[str, Any]) -> Any:
    rounds = _played(report)
    bases = [r["base_metric"] for r in rounds if r["kind"] == "training"]
    unchanged = bases[:1] * (len(rounds) - len(bases))  # by the statistics round
    lines = [
        (report["pooled_metric"], "all rows in one place", GREEN, "--"),
        (report["local_only_metric"], "each hospital alone, mean", ORANGE, ":"),
    ]
    figure = curve_of(_ticks(rounds), [*unchanged, *bases, report["final_metric"]], report["metric_name"], lines)
    for x, entry in enumerate(rounds):
        if entry["outcome"] == "void":
            figure.axes[0].axvspan(x, x + 1, color=RED, alpha=0.08)
    return figure


def _money_picture(report: dict[str, Any]) -> Any:
    roles = {"hospital": BLUE, "voter": GREEN, "aggregator": ORANGE, "stranger": RED}
    accounts = [row for row in report["balances"].values() if row["role"] in roles]
    figure, axes = figure_of(9, max(3.8, len(accounts) * 0.22))
    rounds = _played(report)
    ends = []
    for row in accounts:
        changes = _changes(rounds, row["name"])
        colour = roles[row["role"]] if row["honest"] else RED
        axes.plot(changes, color=colour, linewidth=2, linestyle="-" if row["honest"] else "--")
        label = row["name"] if row["honest"] else f"{row['name']} ({row['does']})"
        ends.append((changes[-1], label, colour))
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.set_xlim(0, max(len(rounds), 1))
    axes.set_xticks(range(len(rounds) + 1), _ticks(rounds), fontsize=9)
    axes.set_ylabel("tokens gained or lost", color=MUTED)
    label_ends(axes, ends)
    return figure


def _changes(rounds: list[dict[str, Any]], name: str) -> list[float]:
    """An account's total gain in tokens: at the start, and after each round."""
    changes = [0.0]
    for entry in rounds:
        gained = sum(int(p["amount"]) for p in entry["payouts"] if p["who"] == name)
        lost = sum(int(s["amount"]) for s in entry["slashes"] if s["who"] == name)
        changes.append(changes[-1] + (gained - lost) / TOKEN)
    return changes


def _time_picture(report: dict[str, Any]) -> Any:
    figure, axes = figure_of(9, 3.2)
    labels = ["statistics" if r["kind"] == "statistics" else f"round {r['index']}" for r in report["rounds"]]
    below = [0.0] * len(labels)
    for phase, colour in PHASE_COLOURS.items():
        heights = [r["seconds"].get(phase, 0.0) for r in report["rounds"]]
        if any(heights):
            axes.bar(labels, heights, bottom=below, color=colour, width=0.6, label=phase)
        below = [b + h for b, h in zip(below, heights, strict=True)]
    axes.set_ylabel("seconds", color=MUTED)
    axes.legend(frameon=False, ncols=1, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
    return figure


def _gas_picture(report: dict[str, Any]) -> Any:
    used: dict[str, list[int]] = defaultdict(list)
    for entry in report["rounds"]:
        for call, gas in entry["gas"].items():
            used[call].append(gas)
    means = sorted((sum(v) / len(v), call) for call, v in used.items())
    figure, axes = figure_of(9, 0.5 + 0.38 * max(len(means), 1))
    axes.grid(visible=False)
    bars = axes.barh([call for _, call in means], [gas for gas, _ in means], color=BLUE, height=0.6)
    axes.bar_label(bars, [f" {gas:,.0f}" for gas, _ in means], color=INK, fontsize=9)
    axes.set_xticks([])
    axes.set_title("gas per transaction and party, mean", loc="left", color=MUTED, fontsize=10)
    return figure


def _amount(text: str) -> str:
    return f"{int(text) / TOKEN:,.2f}"


def _balances(report: dict[str, Any]) -> str:
    rows = []
    for row in report["balances"].values():
        change = int(row["after"]) - int(row["before"])
        kind = "good" if change > 0 else "bad" if change < 0 else ""
        rows.append(
            f"<td>{html.escape(row['name'])}<td>{row['role']}<td>{html.escape(row['does'] or '')}"
            f"<td class=n>{'' if row['rows'] is None else row['rows']}"
            f"<td class=n>{_amount(row['before'])}<td class=n>{_amount(row['after'])}"
            f"<td class='n {kind}'>{change / TOKEN:+,.2f}"
        )
    return table_of(
        "<th>account<th>role<th>attack<th class=n>rows<th class=n>before<th class=n>after<th class=n>change, tokens",
        rows,
    )


def _rounds(report: dict[str, Any]) -> str:
    rows = []
    for entry in report["rounds"]:
        for index, cohort in enumerate(entry["cohorts"]):
            median = cohort["median_improvement"]
            rows.append(
                f"<td>{entry['index']}<td>{entry['outcome']}<td>{index}"
                f"<td>{html.escape(', '.join(cohort['members']))}<td class=n>{cohort['weight']}"
                f"<td>{'yes' if cohort['sum_verified_on_chain'] else 'no'}"
                f"<td class=n>{'–' if median is None else f'{median:+.4f}'}<td>{'yes' if cohort['accepted'] else 'no'}"
            )
    head = (
        "<th>round<th>outcome<th>cohort<th>hospitals in the sum<th class=n>weight<th>sum proven on chain"
        "<th class=n>median improvement<th>accepted"
    )
    return table_of(head, rows)


def _arena(report: dict[str, Any]) -> str:
    arena = report.get("arena")
    if arena is None:
        return ""
    rows = [
        f"<td>{entry['round']}<td class=n>{one['rank'] or '–'}<td>{html.escape(one['who'])}"
        f"<td class=n>{one['median']:+.4f}<td class=n>{one['share']:.3f}<td class=n>{_amount(one['paid'])}"
        for entry in arena["rounds"]
        for one in entry["standings"]
    ]
    head = "<th>round<th class=n>rank<th>trainer<th class=n>median<th class=n>share<th class=n>tokens"
    trainers = [name for name, row in report["balances"].items() if row["role"] == "hospital"]
    names = [report["balances"][account]["name"] for account in trainers]
    return f"<h2>The arena of {len(names)} trainers</h2>{svg(_medians_picture(arena, names))}{table_of(head, rows)}"


def _medians_picture(arena: dict[str, Any], names: list[str]) -> Any:
    """Each trainer's curve: its median, round by round."""
    figure, axes = figure_of(9, 3.8)
    ends, numbers = [], [entry["round"] for entry in arena["rounds"]]
    for name in names:
        medians = {
            entry["round"]: one["median"]
            for entry in arena["rounds"]
            for one in entry["standings"]
            if one["who"] == name
        }
        best = any(one["who"] == name and one["rank"] == 1 for entry in arena["rounds"] for one in entry["standings"])
        axes.plot(list(medians), list(medians.values()), color=BLUE if best else MUTED, linewidth=2 if best else 1)
        if medians:
            ends.append((medians[max(medians)], name, BLUE if best else MUTED))
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.set_xticks(numbers, [f"round {number}" for number in numbers], fontsize=9)
    axes.set_ylabel("median improvement", color=MUTED)
    label_ends(axes, ends)
    return figure


def _strangers(report: dict[str, Any]) -> str:
    rows = []
    for call in report["strangers"]:
        errors = ", ".join(f"<b>{html.escape(error)}</b> {times}" for error, times in call["errors"].items())
        taken = "<br>".join(html.escape(field) for field in dict.fromkeys(one["field"] for one in call["taken"]))
        rows.append(
            f"<td>{html.escape(call['call'])}<td class=n>{call['tried']}<td class=n>{call['refused']}"
            f"<td>{errors}<td>{taken}"
        )
    if not rows:
        return ""
    broken = "".join(f"<p class=bad>{html.escape(words)}</p>" for words in report["broken"])
    table = table_of("<th>call<th class=n>tried<th class=n>refused<th>error<th>accepted", rows)
    return f"<h2>Calls of strangers, each with bad values in one field</h2>{broken}{table}"


def _sales(sales: dict[str, Any] | None) -> str:
    """Predictions that were sold after the task's end."""
    if sales is None:
        return ""
    tiles = [
        (f"{sales['sold']:,}", "predictions sold"),
        (str(sales["lost"]), "lost"),
        (sales["difference"], "difference of all payments, in wei"),
        (f"{sales['gas_per_prediction']:g}", "gas a prediction"),
        (f"{sales['p95_ms']:g} ms", "within which 95 in 100 answers came"),
    ]
    plain = sales["onnxruntime_p95_ms"]
    beside = "" if plain is None else f" onnxruntime alone takes {plain:g} ms."
    words = (
        f"Buyers paid {_tokens(sales['paid'])} tokens: the server got {_tokens(sales['server'])}, the holders of the"
        f" model's parts {_tokens(sales['holders'])}. The server was killed {sales['kills']} times meanwhile.{beside}"
    )
    return f"<h2>Predictions for money</h2>{tiles_of(tiles)}<p>{words}</p>"


def _tokens(amount: str) -> str:
    return exact_tokens(int(amount))


def _refusals(report: dict[str, Any]) -> str:
    rows = [
        "".join(f"<td>{html.escape(str(cell))}" for cell in (entry["index"], one["who"], one["what"]))
        + f"<td><b>{html.escape(one['error'])}</b>"
        for entry in report["rounds"]
        for one in entry["refusals"]
    ]
    head = "<th>round<th>account<th>call<th>error"
    return f"<h2>Calls that the contract refused</h2>{table_of(head, rows)}" if rows else ""
