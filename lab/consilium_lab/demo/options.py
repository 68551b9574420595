"""Options of the demo. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

OUTPUT = Path(".consilium/demo")
MEDQUAD_FILE = "medquad_qtype9.csv"
MIN_MASKED = 3  # the same as in `consilium_chain.tasks.task_spec`, which is too heavy for --help


class DataSet(StrEnum):
    """Data sets of demos. `table`: one's own. `medquad-texts`: without labels, for a language model.
    `recurrence`: generated.
    """

    WDBC = "wdbc"
    HEART = "heart"
    MEDQUAD = "medquad"
    MEDQUAD_TEXTS = "medquad-texts"
    PNEUMONIA = "pneumonia"
    RECURRENCE = "recurrence"
    TABLE = "table"

    @property
    def needs(self) -> str | None:
        """The files that --data-dir must have; None if no files are needed."""
        return {
            DataSet.HEART: "the four processed.*.data files",
            DataSet.MEDQUAD: MEDQUAD_FILE,
            DataSet.MEDQUAD_TEXTS: MEDQUAD_FILE,
            DataSet.PNEUMONIA: "pneumoniamnist_rebuilt.npz",
        }.get(self)


def needs_folder(data: DataSet) -> str:
    """The fault of a data set without --data-dir."""
    fetched = DataSet.MEDQUAD if data is DataSet.MEDQUAD_TEXTS else data
    return f"--data {data} needs --data-dir with {data.needs}; `consilium data fetch {fetched} --to DIR` gets them"


class Attack(StrEnum):
    """Behaviour of a dishonest hospital or voter, or of strangers that join."""

    SIGN_FLIP = "sign-flip"
    LABEL_FLIP = "label-flip"
    NOISE = "noise"
    FALSE_UPLOAD = "false-upload"
    LAZY = "lazy"
    SILENT = "silent"
    STRANGER = "stranger"

    @property
    def by_voter(self) -> bool:
        return self in (Attack.LAZY, Attack.SILENT)

    @property
    def by_hospital(self) -> bool:
        return not self.by_voter and self is not Attack.STRANGER


class Stranger(StrEnum):
    """The role that a stranger joins in. Every `Attack.STRANGER` adds one of each to the other parties."""

    HOSPITAL = "as-hospital"
    VOTER = "as-voter"


CODECS = {"hash": "buckets", "lowrank": "rank", "dct": "kept", "sketch": "columns"}  # their argument


class Cheat(StrEnum):
    """Ways in which the aggregator cheats in one round."""

    CHANGE_BLOB = "change-blob"
    DROP_HOSPITAL = "drop-hospital"
    COPIED_COMMITMENT = "copied-commitment"
    IGNORE_COMMITMENTS = "ignore-commitments"


@dataclass(frozen=True)
class TableOptions:
    """One's own table. `sites`: the column that names the hospital; without, rows are dealt evenly."""

    file: Path
    label: str | None = None
    sites: str | None = None
    leave_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class DemoOptions:
    """As `consilium demo --help` has them. `attacks`: one for each dishonest party. None: the data set's own number."""

    data: DataSet = DataSet.WDBC
    data_dir: Path | None = None
    hospitals: int | None = None
    voters: int = 5
    rounds: int | None = None
    cohorts: int | None = None
    seats: int | None = None
    seed: int = 0
    attacks: tuple[Attack, ...] = ()
    cheat: Cheat | None = None
    kill_in_round: int | None = None
    kill_aggregator_in_round: int | None = None
    chain_port: int | None = None
    digests: bool = False
    masked: bool = True
    output: Path = OUTPUT
    epsilon: float | None = None
    table: TableOptions | None = None
    codec: Mapping[str, Any] | None = None
    program: Path | None = None  # the folder of an exported one, instead of the data set's model
    sell: int = 0  # predictions to sell at the end

    @property
    def hospital_count(self) -> int:
        """Heart has four hospitals, MedQuAD at most nine; a table those that it names."""
        return self.hospitals or {DataSet.HEART: 4, DataSet.MEDQUAD: 3, DataSet.MEDQUAD_TEXTS: 3}.get(self.data, 6)

    @property
    def strangers(self) -> int:
        """The number of strangers in the hospitals' role, and in the voters'."""
        return self.attacks.count(Attack.STRANGER)

    @property
    def cheat_round(self) -> int:
        """The round in which the aggregator cheats: between honest rounds, if there are enough."""
        return min(2, self.rounds or 2)


def least_cohort(strangers: int) -> int:
    """The smallest masked cohort that has a sum without the strangers: two thirds must take part."""
    return max(MIN_MASKED + strangers, 3 * strangers)


def parse_attack(text: str) -> tuple[Attack, ...]:
    """KIND or KIND:COUNT. Raises ValueError."""
    kind, _, count = text.partition(":")
    try:
        attack, times = Attack(kind), int(count or "1")
    except ValueError:
        known = ", ".join(Attack)
        raise ValueError(f"{text!r} is not KIND or KIND:COUNT; KIND is one of {known}") from None
    if times < 1:
        raise ValueError(f"{text!r}: COUNT must be at least 1")
    return (attack,) * times


def parse_codec(text: str) -> dict[str, Any]:
    """NAME:NUMBER, for one of CODECS, as the task file has it. Raises ValueError."""
    name, _, number = text.partition(":")
    key = CODECS.get(name)
    if key is None or not number.isdecimal():
        forms = " or ".join(f"{known}:{argument.upper()}" for known, argument in CODECS.items())
        raise ValueError(f"{text!r} is not {forms}, with a whole number")
    return {"name": name, key: int(number)}


def check(options: DemoOptions) -> None:
    """Checks combinations of options. Raises ValueError."""
    _check_table(options)
    if options.program is not None and not options.program.is_dir():
        raise ValueError(f"--program takes the folder that consilium.export wrote, and {options.program} is none")
    if options.data is DataSet.MEDQUAD_TEXTS and options.program is None:
        raise ValueError("--data medquad-texts needs --program with a language model (docs/models.md makes one)")
    if options.data is DataSet.MEDQUAD_TEXTS and Attack.LABEL_FLIP in options.attacks:
        raise ValueError("texts without labels have none to flip: take another --attack")
    if options.data is DataSet.RECURRENCE and Attack.LABEL_FLIP in options.attacks:
        raise ValueError("times have no label to flip: take another --attack")
    if options.sell and options.data not in (DataSet.WDBC, DataSet.HEART, DataSet.TABLE):
        raise ValueError("--sell sends rows of a table: take --data wdbc, heart or table")
    if options.sell and (options.attacks or options.cheat):
        raise ValueError("--sell needs a model: leave out --attack and --cheat")
    by_voters = sum(attack.by_voter for attack in options.attacks)
    by_hospitals = sum(attack.by_hospital for attack in options.attacks)
    if options.data.needs and options.data_dir is None:
        raise ValueError(needs_folder(options.data))
    hospitals, cohorts = options.hospital_count, options.cohorts or 1
    if options.data is DataSet.HEART and hospitals != 4:
        raise ValueError("--data heart has four hospitals: leave --hospitals at 4")
    if cohorts > hospitals:
        raise ValueError(f"{cohorts} cohorts need as many hospitals, but there are {hospitals}: lower --cohorts")
    if options.masked and cohorts * MIN_MASKED > hospitals:
        raise ValueError(
            f"masks need {MIN_MASKED} to each cohort, {cohorts * MIN_MASKED} hospitals in all, but there are"
            f" {hospitals}: lower --cohorts, raise --hospitals, or pass --no-masks"
        )
    if Attack.FALSE_UPLOAD in options.attacks and not options.masked:
        raise ValueError("--attack false-upload needs masked uploads: leave out --no-masks")
    voters = options.voters + options.strangers
    if options.seats is not None and options.seats > voters:
        raise ValueError(f"{options.seats} seats are more than the {voters} voters: lower --seats")
    if by_hospitals >= hospitals or by_voters >= options.voters:
        raise ValueError("at least one hospital and one voter must be honest: lower the attack's COUNT")
    if options.cheat is not None and hospitals < 2:
        raise ValueError("--cheat needs at least two hospitals")
    if options.strangers:
        _check_strangers(options)
    last_round = options.rounds if options.rounds is not None else 5
    kills = {"--kill-in-round": options.kill_in_round, "--kill-aggregator-in-round": options.kill_aggregator_in_round}
    for name, number in kills.items():
        if number is not None and number > last_round:
            raise ValueError(f"{name} {number} is after the last round, {last_round}")


def _check_table(options: DemoOptions) -> None:
    """Raises ValueError."""
    if options.data is DataSet.TABLE and options.table is None:
        raise ValueError(
            "--data table needs --file with the table, and takes --label and --sites, names of its columns"
        )
    if options.data is not DataSet.TABLE and options.table is not None:
        raise ValueError("--file, --label, --sites and --leave-out belong to --data table: add it")


def _check_strangers(options: DemoOptions) -> None:
    """The honest parties must be able to settle each round, with any assignment. Raises ValueError."""
    strangers, cohorts = options.strangers, options.cohorts or 1
    kills = (options.kill_in_round, options.kill_aggregator_in_round)
    if len(options.attacks) > strangers or options.cheat is not None or kills != (None, None):
        raise ValueError(
            "--attack stranger needs all others honest and alive: leave out other attacks, --cheat and --kill-..."
        )
    if strangers >= options.voters:
        raise ValueError(
            f"{strangers} strangers judge together with {options.voters} voters, and must be fewer: raise --voters"
        )
    least = cohorts * least_cohort(strangers) - strangers
    if options.masked and options.hospital_count < least:
        raise ValueError(
            f"with {strangers} stranger(s), {cohorts} cohort(s) need {least} hospitals for a sum, but there are"
            f" {options.hospital_count}: raise --hospitals, or lower --cohorts or the attack's COUNT"
        )
