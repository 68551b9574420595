"""The power of a share of Ethereum's validators over a value of `PrevrandaoBeacon`, by its look-ahead.

    python -m bench.chain.prevrandao      # writes the table of docs/protocol.md

Slots are drawn independently, each the attacker's with its share. An attacker who chooses when the value is asked for,
within an hour, does one of two things:

- know it. All slots from the one that asks to the last before the value are its own. It is then the only one to reveal
  anything, and asks for another value where it does not like this one.
- choose it. The last k slots before the value are its own. By withholding some it chooses among 2^k values at most (k
  bits of influence, EIP-4399). Up to two epochs ahead the proposers are known (MIN_SEED_LOOKAHEAD = 1), so it asks just
  so many blocks before k slots of its own that come within the hour. Farther ahead it takes what comes.
"""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "protocol.md"
BEGIN, END = "<!-- prevrandao by bench/chain/prevrandao.py: from here -->\n", "<!-- to here -->"
SHARES = (0.05, 0.1, 0.3)
LOOKAHEADS = (2, 8, 64, 128)
SLOTS_OF_AN_HOUR = 300
SLOT = 12  # seconds
KNOWN_AHEAD = 64  # slots: the rest of this epoch and the next one, at most


def chance_of_run(share: float, length: int, slots: int) -> float:
    """Of at least one run of `length` own slots in a row among `slots`."""
    runs = [1.0] + [0.0] * (length - 1)  # chance that the run at the end has this length, and none was long enough
    for _ in range(slots):
        runs = [(1 - share) * sum(runs), *(share * one for one in runs[:-1])]
    return 1 - sum(runs)


def chance_to_know(share: float, lookahead: int) -> float:
    return chance_of_run(share, lookahead, SLOTS_OF_AN_HOUR)


def chance_to_choose(share: float, lookahead: int, last: int) -> float:
    """Among 2^last values at most."""
    return chance_of_run(share, last, SLOTS_OF_AN_HOUR) if lookahead <= KNOWN_AHEAD else share**last


def percent(chance: float) -> str:
    if chance < 1e-4:
        return "< 0.01 %"
    return "> 99 %" if chance > 0.99 else f"{100 * chance:.2g} %"


def table() -> str:
    shares = [f"{100 * share:g} %" for share in SHARES]
    heads = [f"{words}, by {share}" for words in ("knows it", "chooses among up to four") for share in shares]
    rows = [["look-ahead", "its wait", *heads], ["---"] * (2 + len(heads))]
    for ahead in LOOKAHEADS:
        known = [percent(chance_to_know(share, ahead)) for share in SHARES]
        chosen = [percent(chance_to_choose(share, ahead, 2)) for share in SHARES]
        rows.append([f"{ahead} blocks", f"{ahead * SLOT / 60:g} min", *known, *chosen])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    before, rest = DOCS.read_text().split(BEGIN)
    DOCS.write_text(before + BEGIN + table() + END + rest.split(END, 1)[1])


if __name__ == "__main__":
    main()
