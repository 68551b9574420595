"""The demo's command line, parsed into one value before anything heavy is imported or started."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

OUTPUT = Path(".consilium/demo")
MIN_MASKED = 3  # as `consilium_chain.tasks.task_spec` has it, which is not imported for --help


class DataSet(StrEnum):
    WDBC = "wdbc"
    HEART = "heart"
    MEDQUAD = "medquad"
    PNEUMONIA = "pneumonia"

    @property
    def needs(self) -> str | None:
        """What --data-dir holds; None without one."""
        return {
            DataSet.HEART: "the four processed.*.data files",
            DataSet.MEDQUAD: "medquad_qtype9.csv",
            DataSet.PNEUMONIA: "pneumoniamnist_rebuilt.npz",
        }.get(self)


class Attack(StrEnum):
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
    """Whose place it takes. One of each comes with every `Attack.STRANGER`, beside the parties that there are."""

    HOSPITAL = "as-hospital"
    VOTER = "as-voter"


class Cheat(StrEnum):
    CHANGE_BLOB = "change-blob"
    DROP_HOSPITAL = "drop-hospital"
    ROGUE_COMMITMENT = "rogue-commitment"
    IGNORE_COMMITMENTS = "ignore-commitments"


@dataclass(frozen=True)
class DemoOptions:
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

    @property
    def hospital_count(self) -> int:
        """Heart has the four that its data came from, MedQuAD at most the nine of its."""
        return self.hospitals or {DataSet.HEART: 4, DataSet.MEDQUAD: 3}.get(self.data, 6)

    @property
    def strangers(self) -> int:
        """So many take a hospital's place, and as many a voter's."""
        return self.attacks.count(Attack.STRANGER)

    @property
    def cheat_round(self) -> int:
        """The round in which the aggregator cheats: one in the middle, so that honest ones stand around it."""
        return min(2, self.rounds or 2)


def least_cohort(strangers: int) -> int:
    """The least members with which a masked cohort has a sum without any stranger: two thirds must be there."""
    return max(MIN_MASKED + strangers, 3 * strangers)


def parse_attack(text: str) -> tuple[Attack, ...]:
    """KIND or KIND:COUNT. Raises typer.BadParameter."""
    kind, _, count = text.partition(":")
    try:
        attack, times = Attack(kind), int(count or "1")
    except ValueError:
        known = ", ".join(Attack)
        raise typer.BadParameter(f"{text!r} is not KIND or KIND:COUNT with a KIND of {known}") from None
    if times < 1:
        raise typer.BadParameter(f"{text!r}: COUNT must be at least 1")
    return (attack,) * times


def check(options: DemoOptions) -> None:
    """Combinations that no single option shows. Raises typer.BadParameter."""
    by_voters = sum(attack.by_voter for attack in options.attacks)
    by_hospitals = sum(attack.by_hospital for attack in options.attacks)
    if options.data.needs and options.data_dir is None:
        raise typer.BadParameter(f"--data {options.data} needs --data-dir with {options.data.needs}")
    hospitals, cohorts = options.hospital_count, options.cohorts or 1
    if options.data is DataSet.HEART and hospitals != 4:
        raise typer.BadParameter("--data heart has four hospitals: leave --hospitals at 4")
    if cohorts > hospitals:
        raise typer.BadParameter(f"{cohorts} cohorts need as many hospitals; there are {hospitals}")
    if options.masked and cohorts * MIN_MASKED > hospitals:
        raise typer.BadParameter(
            f"{cohorts} cohort(s) need {cohorts * MIN_MASKED} hospitals, {MIN_MASKED} to each, for masks to hide any of"
            f" them; there are {hospitals}: lower --cohorts, raise --hospitals, or say --no-masks"
        )
    if Attack.FALSE_UPLOAD in options.attacks and not options.masked:
        raise typer.BadParameter("--attack false-upload is on masked uploads: leave out --no-masks")
    voters = options.voters + options.strangers
    if options.seats is not None and options.seats > voters:
        raise typer.BadParameter(f"{options.seats} seats are above the {voters} voters: lower --seats")
    if by_hospitals >= hospitals or by_voters >= options.voters:
        raise typer.BadParameter("at least one hospital and one voter must be honest: lower the attack's COUNT")
    if options.cheat is not None and hospitals < 2:
        raise typer.BadParameter("--cheat needs at least two hospitals")
    if options.strangers:
        _check_strangers(options)
    last_round = options.rounds if options.rounds is not None else 5
    kills = {
        "--kill-in-round": options.kill_in_round,
        "--kill-aggregator-in-round": options.kill_aggregator_in_round,
    }
    for name, number in kills.items():
        if number is not None and number > last_round:
            raise typer.BadParameter(f"{name} {number} is after the last round, {last_round}")


def _check_strangers(options: DemoOptions) -> None:
    """Whatever chance deals, the honest must be able to settle each round. Raises typer.BadParameter."""
    strangers, cohorts = options.strangers, options.cohorts or 1
    kills = (options.kill_in_round, options.kill_aggregator_in_round)
    if len(options.attacks) > strangers or options.cheat is not None or kills != (None, None):
        raise typer.BadParameter(
            "--attack stranger wants all others honest and alive: leave out other attacks, --cheat and --kill-..."
        )
    if strangers >= options.voters:
        raise typer.BadParameter(
            f"{strangers} strangers judge beside {options.voters} voters, who must be more: raise --voters"
        )
    least = cohorts * least_cohort(strangers) - strangers
    if options.masked and options.hospital_count < least:
        raise typer.BadParameter(
            f"{cohorts} cohort(s) have a sum in spite of {strangers} stranger(s) with {least} hospitals or more; there"
            f" are {options.hospital_count}: raise --hospitals, or lower --cohorts or the attack's COUNT"
        )


def demo_command(
    data: Annotated[
        DataSet,
        typer.Option(
            help="wdbc (a table) comes with scikit-learn; heart (a table), medquad (texts) and pneumonia (images) need"
            " --data-dir"
        ),
    ] = DataSet.WDBC,
    data_dir: Annotated[Path | None, typer.Option(help="folder of the data set's files")] = None,
    hospitals: Annotated[
        int | None, typer.Option(min=2, max=64, help="hospitals that train  [default: 6; heart: 4; medquad: 3]")
    ] = None,
    voters: Annotated[int, typer.Option(min=1, max=64, help="voters that may be drawn")] = 5,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=1000, help="training rounds  [default: 5; heart: 10]")
    ] = None,
    cohorts: Annotated[
        int | None, typer.Option(min=1, max=64, help="cohorts per round  [default: 2, or 1 where masks want it]")
    ] = None,
    seats: Annotated[
        int | None, typer.Option(min=1, max=64, help="expected size of the committee  [default: voters - 1]")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="seed of the dealing of rows, and of the training that the run is held against")
    ] = 0,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="KIND[:COUNT], may be repeated: sign-flip, label-flip, noise, false-upload (hospitals);"
            " lazy, silent (voters); stranger (two accounts that join besides and try the worst of every call)"
        ),
    ] = None,
    cheat: Annotated[Cheat | None, typer.Option(help="what the aggregator tries in one round")] = None,
    kill_in_round: Annotated[
        int | None, typer.Option(min=0, help="kill -9 one hospital in this round, after it committed")
    ] = None,
    kill_aggregator_in_round: Annotated[
        int | None,
        typer.Option(min=0, help="kill -9 the aggregator in this round, while hospitals upload; start it again"),
    ] = None,
    chain_port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="port of the local chain  [default: a free one]")
    ] = None,
    digests: Annotated[bool, typer.Option("--digests", help="publish by digest, as on a chain without blobs")] = False,
    masks: Annotated[
        bool, typer.Option("--masks/--no-masks", help="hide hospitals' updates from the aggregator")
    ] = True,
    output: Annotated[Path, typer.Option(help="where the report goes; emptied first")] = OUTPUT,
    epsilon: Annotated[
        float | None,
        typer.Option(min=0.2, max=100, help="train privately: all rounds together cost a row this much at most"),
    ] = None,
) -> None:
    """Trains, proves, judges and pays: a whole task on this machine, every party a process of its own."""
    attacks = tuple(one for text in attack or [] for one in parse_attack(text))
    options = DemoOptions(
        data, data_dir, hospitals, voters, rounds, cohorts, seats, seed, attacks, cheat, kill_in_round,
        kill_aggregator_in_round, chain_port, digests, masks, output.resolve(), epsilon,
    )  # fmt: skip
    check(options)

    from consilium_lab.demo.run import run_demo

    raise typer.Exit(run_demo(options))
