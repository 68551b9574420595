"""`consilium operator` as its user types it: a task is proposed, funded and stopped."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from chain_driver import SHARED_WINDOWS, TOKENS, LocalChain, TaskDriver
from command_line import done, refused
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec, spec_hash
from consilium_client.task import load_task
from consilium_core.children import child_environment
from consilium_core.private_files import write_private_file
from voter_driver import TASK, FiledTask

Consilium = Callable[..., tuple[int, str]]
AGGREGATOR = "0x" + "77" * 20
TEXT = TASK.replace("rounds = 1", "rounds = 2").replace('name = "logistic"', 'name = "mlp"\nhidden = [3]')


# --- propose -------------------------------------------------------------------------------------------------------


@dataclass
class Desk:
    """An operator's: account, task file, store, address book."""

    chain: LocalChain
    folder: Path
    operator: Ledger
    consilium: Consilium

    def propose(self, *more: str, aggregator: str = AGGREGATOR, private: bool = False) -> tuple[int, str]:
        return self.consilium(
            "operator", "propose", str(self.folder / "task.toml"), "--artifacts", str(self.folder / "artifacts"),
            "--rpc", self.chain.node.url, "--address-book", str(self.folder / "book.json"),
            "--keystore", str(self.folder / "key.json"), "--password-file", str(self.folder / "password"),
            *(["--aggregator", aggregator] if aggregator else []), *([] if private else ["--not-private"]), *more,
        )  # fmt: skip

    def say(self, command: str, *more: str) -> tuple[int, str]:
        return self.consilium(
            "operator", command, *more, "--rpc", self.chain.node.url, "--address-book", str(self.folder / "book.json"),
            "--keystore", str(self.folder / "key.json"), "--password-file", str(self.folder / "password"),
        )  # fmt: skip

    @property
    def raw(self) -> bytes:
        return (self.folder / "task.toml").read_bytes()

    @property
    def proposed(self) -> list[int]:
        return self.operator.record.proposals(self.operator.address, spec_hash(self.raw))

    def use(self, ledger: Ledger) -> None:
        (self.folder / "key.json").unlink(missing_ok=True)
        write_keystore(self.folder / "key.json", ledger.connection.signer, "secret", LIGHT_SCRYPT_N)
        self.operator = ledger


@pytest.fixture
def desk(consilium: Consilium, local_chain: LocalChain, tmp_path: Path) -> Desk:
    local_chain.deployment.write(tmp_path / "book.json")
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "task.toml").write_text(TEXT)
    write_private_file(tmp_path / "password", "secret\n")
    found = Desk(local_chain, tmp_path, local_chain.funded(), consilium)
    found.use(found.operator)
    return found


def test_a_dry_run_says_what_it_would_be_and_sends_nothing(desk: Desk) -> None:
    before = desk.operator.tasks.count(), desk.operator.token.balance(desk.operator.address)
    spec = parse_task_spec(desk.raw)
    done(
        desk.propose("--dry-run", aggregator=""),
        "who will fall ill: valid", spec_hash(desk.raw).hex(), f"{spec.parameters} parameters of a mlp model",
        "2 rounds after the statistics, 1 to 1 hospitals", "0.4 MB in the artifact store", "pool 1,000 tokens",
        "a round pays hospitals 350.00, voters 100.00, aggregator 50.00 at most", "ether/token", "gwei", "time: about",
        "warning (no masks)", "warning (published alone)", "warning (no privacy)", "warning (sums off chain)",
        "warning (no decoys)", "warning (small committee)", "dry run: nothing was sent",
    )  # fmt: skip
    assert (desk.operator.tasks.count(), desk.operator.token.balance(desk.operator.address)) == before
    assert not list((desk.folder / "artifacts").iterdir())


def test_a_proposal_is_asked_about_paid_and_on_chain_as_its_file_says(desk: Desk) -> None:
    count = desk.operator.tasks.count()
    refused(
        desk.propose(), "nothing was sent: answer y, or pass --yes", "pays 1,000.00 tokens into the pool",
        "has 0.00 tokens of free stake. It cannot join before it has staked its bond of 1,000.00",
    )  # fmt: skip
    refused(desk.propose("--yes", aggregator=""), "AggregatorMissing", "--aggregator")
    refused(desk.propose("--yes", aggregator="0x12"), "this is not an address", code=2)
    mistyped = "0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # of EIP-55, its first letter in the wrong case
    refused(desk.propose("--yes", aggregator=mistyped), "checksum (EIP-55)", code=2)
    assert desk.operator.tasks.count() == count
    assert not list((desk.folder / "artifacts").iterdir())
    done(desk.propose("--yes"), f"task {count + 1} is proposed", f"consilium operator watch {count + 1}")
    wanted = task_params(
        parse_task_spec(desk.raw), spec_hash(desk.raw), desk.operator.tasks.params(count + 1).aggregator
    )
    assert desk.operator.tasks.params(count + 1) == wanted
    assert wanted.aggregator.lower() == AGGREGATOR
    assert desk.operator.token.balance(desk.operator.address) == TOKENS - 1_000 * TOKEN
    assert ArtifactStore(desk.folder / "artifacts").get_file(spec_hash(desk.raw)) == desk.raw
    assert (
        load_task(desk.operator, ArtifactStore(desk.folder / "artifacts"), count + 1).spec.name == "who will fall ill"
    )


def test_the_same_file_is_not_paid_for_twice_by_accident(desk: Desk) -> None:
    done(desk.propose("--yes"))
    (task,) = desk.proposed
    for flags in (["--yes"], []):
        refused(desk.propose(*flags), "AlreadyProposed", f"task {task}", "--again")
    refused(desk.propose("--again"), "answer y, or pass --yes")
    assert desk.proposed == [task]
    done(desk.propose("--again", "--yes"), "is proposed")
    assert len(desk.proposed) == 2
    with desk.chain.undone():  # nobody joins them: both end
        desk.chain.pass_time(100_001)
        for number in desk.proposed:
            desk.operator.phases.tick(number)
            assert desk.operator.tasks.state(number).phase is Phase.ENDED
        done(desk.propose("--yes"), "again: task", "and has ended", "is proposed")
    # Another file, or another account, is another task.
    (desk.folder / "task.toml").write_text(TEXT.replace("fall ill", "be ill"))
    done(desk.propose("--yes"), "is proposed")
    (desk.folder / "task.toml").write_text(TEXT)
    desk.use(desk.chain.funded())
    done(desk.propose("--yes"), "is proposed")


def test_all_shards_of_a_model_are_proposed_and_paid_at_once(desk: Desk) -> None:
    (desk.folder / "task.toml").write_text(TEXT.replace("[rounds]", "[rounds]\nshards = 3"))
    had, count = desk.operator.token.balance(desk.operator.address), desk.operator.tasks.count()
    said = desk.propose("--yes")
    first, last = count + 1, count + 3
    done(said, "3 shards", "pays 3,000.00 tokens", f"tasks {first} to {last}, the shards of one model, are proposed")
    done(said, f"consilium operator invite {first} --output FILE …", "to all 3 with a --superlink of each")
    assert desk.proposed == [first, first + 1, last]
    assert had - desk.operator.token.balance(desk.operator.address) == 3_000 * TOKEN
    refused(desk.propose("--yes"), "AlreadyProposed", f"task {first}, {first + 1}, {last}")
    desk.use(desk.chain.funded(2_999 * TOKEN))
    refused(desk.propose("--yes"), "Unfunded", "lacks 1.00 tokens")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_at_a_terminal_both_questions_are_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(words: str, *flags: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "stdin", Terminal(words))
        return desk.propose(*flags)

    refused(answered("n\n"), "Propose it, and pay 1,000.00 tokens?", "ProposalNotConfirmed")
    done(answered("y\n"), "is proposed")
    refused(answered("n\n"), f"Task {desk.proposed[0]} has the same file, and has not ended", "AlreadyProposed")
    refused(answered("y\n", "--yes"), "AlreadyProposed")
    assert len(desk.proposed) == 1
    done(answered("y\n"), "Pay for another task?", "is proposed")
    refused(answered("n\n", "--again"), "Propose it, and pay", "ProposalNotConfirmed")
    assert len(desk.proposed) == 2


def test_the_local_chain_needs_no_key_file_and_half_of_one_is_none(desk: Desk) -> None:
    given = [
        "operator", "propose", str(desk.folder / "task.toml"), "--artifacts", str(desk.folder / "artifacts"),
        "--rpc", desk.chain.node.url, "--address-book", str(desk.folder / "book.json"), "--aggregator", AGGREGATOR,
        "--not-private", "--yes",
    ]  # fmt: skip
    refused(desk.consilium(*given, "--keystore", str(desk.folder / "key.json")), "KeystoreError", "--password-file")
    (desk.folder / "task.toml").write_text(TEXT.replace("fall", "pay"))
    done(desk.consilium(*given), "is proposed", desk.chain.treasury.address)


def test_a_task_without_privacy_is_proposed_by_a_word_of_its_own_alone(desk: Desk) -> None:
    refused(desk.propose("--yes", private=True), "PrivacyMissing", "epsilon = 8", "--not-private")
    assert desk.proposed == []
    assert not list((desk.folder / "artifacts").iterdir())
    done(desk.propose("--dry-run", private=True), "warning (no privacy)", "dry run: nothing was sent")
    (desk.folder / "task.toml").write_text(TEXT + "[privacy]\nepsilon = 8\nmax_grad_norm = 1.0\n")
    done(desk.propose("--yes", private=True), "is proposed")


def test_what_is_missing_is_said_before_anything_is_sent(desk: Desk) -> None:
    desk.use(desk.chain.ledger(b"\x05" * 32))
    refused(desk.propose("--yes"), "Unfunded", desk.operator.address, "lacks 1,000.00 tokens and 0.00", "ether for gas")
    refused(desk.propose("--yes", "--password-file", "/nowhere"), "KeystoreError", "does not exist")
    assert not list((desk.folder / "artifacts").iterdir())
    (desk.folder / "task.toml").write_text(TEXT.replace("seats = 1", "seats = 2"))
    refused(desk.propose("--dry-run"), "SpecInvalid", "lower seats")
    refused(desk.consilium("operator", "check", "/nowhere.toml"), "SpecInvalid", "cannot be read")


def test_a_pool_is_added_to_by_its_operator_while_others_join(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    done(desk.propose("--yes"))
    (number,) = desk.proposed
    fund = ("fund", str(number))
    shown = (
        f"task {number}: a pool of 1,000.00 tokens becomes one of 1,500.00",
        "hospitals 350.00, then 525.00; voters 100.00, then 150.00; aggregator 50.00, then 75.00",
        "bond of 1,000.00 tokens allows at most 4,000 whole tokens", "holds 999,000.00 tokens",
    )  # fmt: skip
    refused(desk.say(*fund, "500"), "nothing was sent: answer y, or pass --yes", *shown)
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    refused(desk.say(*fund, "500"), f"Add 500.00 tokens to the pool of task {number}?", "ProposalNotConfirmed")
    refused(desk.say(*fund, "4001", "--yes"), "BondOutweighed", f"Add at most 4,000 tokens to task {number}")
    refused(desk.say(*fund, "0", "--yes"), "TOKENS", code=2)
    assert desk.operator.token.balance(desk.operator.address) == TOKENS - 1_000 * TOKEN
    done(desk.say(*fund, "500", "--yes"), *shown, f"the pool of task {number} has 1,500.00 tokens")
    done(desk.say("fund", str(number), "3500", "--yes"), "has 5,000.00 tokens")
    assert desk.operator.tasks.state(number).pool_left == desk.operator.tasks.params(number).pool == 5_000 * TOKEN
    assert load_task(desk.operator, ArtifactStore(desk.folder / "artifacts"), number).params.pool == 5_000 * TOKEN
    owner = desk.operator
    desk.use(desk.chain.funded())
    refused(desk.say(*fund, "1", "--yes"), "NotOperator")
    desk.use(owner)
    refused(desk.say(*fund, "1", "--yes"), "BondOutweighed", "Add at most 0 tokens")
    done(desk.say("stop", str(number), "--yes"), f"task {number} has ended")
    assert owner.token.balance(owner.address) == TOKENS
    refused(desk.say(*fund, "1", "--yes"), "WrongPhase")


def test_who_may_not_add_to_a_pool_pays_nothing(desk: Desk) -> None:
    task = FiledTask(desk.chain, desk.folder, TEXT.replace("fall", "stay"))
    ether = desk.operator.connection.ether()
    refused(desk.say("fund", str(task.task), "1", "--yes"), "NotOperator")
    refused(desk.say("fund", "999999", "1", "--yes"), "TaskUnknown")
    assert desk.operator.connection.ether() == ether
    done(desk.propose("--yes"))
    (number,) = desk.proposed
    poor = desk.operator
    poor.token.transfer(desk.chain.treasury.address, poor.token.balance(poor.address) - TOKEN)
    refused(desk.say("fund", str(number), "4", "--yes"), "Unfunded", "lacks 3.00 tokens")
    desk.chain.pass_time(100_001)
    poor.phases.tick(number)
    refused(desk.say("fund", str(number), "1", "--yes"), "WrongPhase")


def test_a_task_is_stopped_by_its_operator_and_the_rest_comes_home(desk: Desk) -> None:
    done(desk.propose("--yes"))
    (number,) = desk.proposed
    refused(desk.say("stop", str(number)), "nothing was sent")
    owner = desk.operator
    desk.use(desk.chain.funded())
    refused(desk.say("stop", str(number), "--yes"), "NotOperator")
    desk.use(owner)
    done(desk.say("stop", str(number), "--yes"), f"task {number} has ended")
    assert desk.operator.token.balance(desk.operator.address) == TOKENS
    refused(desk.say("stop", str(number), "--yes"), "AlreadyStopped")


def test_a_round_under_way_is_played_after_a_stop(desk: Desk) -> None:
    task = TaskDriver(desk.chain, terms=SHARED_WINDOWS).to_committing()
    desk.use(task.operator)
    done(desk.say("stop", str(task.task), "--yes"), f"ends with round {task.round}", "operator refund")
    done(desk.say("refund"), "tokens came back")
    assert (task.operator.tasks.state(task.task).stopping, task.phase) == (True, Phase.COMMITTING)


def test_blobs_are_not_proposed_to_a_chain_without(desk: Desk) -> None:
    book = json.loads((desk.folder / "book.json").read_text())
    (desk.folder / "book.json").write_text(json.dumps(book | {"blobs": False}))
    (desk.folder / "task.toml").write_text(TEXT.replace('publication = "digests"', ""))
    done(desk.propose("--dry-run"), "warning (no blobs here)")
    refused(desk.propose("--yes"), "BlobsUnavailable", 'publication = "digests"')
    assert desk.proposed == []


@pytest.mark.parametrize("command", ["check", "propose", "fund", "watch", "download-model", "serve-model", "evaluate"])
def test_help_is_parsed_before_anything_heavy_is_imported(command: str) -> None:
    script = (
        f"import sys; sys.argv = ['consilium', 'operator', '{command}', '--help']\n"
        "from consilium_cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'web3', 'flwr', 'numpy', 'uvicorn', 'starlette', 'safetensors'} & sys.modules.keys()\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=child_environment())
    assert ran.returncode == 0, ran.stderr
