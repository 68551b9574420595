"""A hospital's home and a chain for cases of bad input, whole until a case breaks a part of them."""

from __future__ import annotations

import datetime
import re
import shutil
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from chain_driver import LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.home import Approval, HospitalHome, VoterHome
from consilium_client.hospital.transport_key import make_transport_key
from consilium_client.voter import registration
from consilium_core.private_files import write_private_file
from consilium_server.certificates import ensure_certificates
from eth_account.signers.local import LocalAccount
from task_files import DATA, SALE

NAME = "Mustermann"  # of a patient: in no message
WINDOWS = "[windows]\njoin = 14_900_000\n"  # whatever other tests let pass on this chain
LOGISTIC = f'{DATA}\n[model]\nname = "logistic"\n{WINDOWS}'
TASKS = {
    "table": f'name = "who will fall ill"\n{LOGISTIC}',
    "private": f'name = "in private"\n{LOGISTIC}[privacy]\nepsilon = 3.0\nmax_grad_norm = 1.0\n',
    "strict": f'name = "next to nothing"\n{LOGISTIC}[privacy]\nepsilon = 1e-6\nmax_grad_norm = 1.0\n',
    "demanding": f'name = "many of both"\n{LOGISTIC}[judging]\nleast_rows = 40\nleast_of_class = 10\n',
    "exact": f'name = "to the last digit"\nstatistics = "exact"\n{LOGISTIC}',
    "counted": f'name = "how many"\n{LOGISTIC}[summary]\n',
    "unmasked": f'name = "in the open"\n{LOGISTIC}[update]\nmasked = false\n',
    "sold": f'name = "for money"\n{LOGISTIC}{SALE}',
    "times": f'name = "how long"\n{LOGISTIC}'.replace(
        'label = "sick"\nclasses = ["no", "yes"]',
        'question = { kind = "survival", time = "days", event = "died", bounds = [30, 90] }',
    ),
    "text": 'name = "notes"\n[data]\nkind = "text"\ntext = "note"\nlabel = "found"\nclasses = ["healthy", "ill"]\n'
    f'[model]\nname = "lora"\n{WINDOWS}',
    "images": 'name = "x-rays"\n[data]\nkind = "images"\nclasses = ["normal", "ill"]\nheight = 8\nwidth = 10\n'
    f'[model]\nname = "cnn"\nchannels = [4]\n{WINDOWS}',
    "series": 'name = "icu"\n[data]\nkind = "series"\nlabel = "sick"\nclasses = ["no", "yes"]\nsteps = 4\n'
    '[[data.features]]\nname = "rate"\nmin = 0\nmax = 250\n'
    f'[model]\nname = "tcn"\nchannels = [2]\n{WINDOWS}',
}
TASKS["scans"] = TASKS["images"].replace("height", 'modality = "CT"\nwindow = { center = 40, width = 400 }\nheight', 1)
TASKS["channels"] = TASKS["images"].replace("height", "channels = 2\nheight", 1)
TASKS["masks"] = (
    'name = "lesions"\n[data]\nkind = "images"\nheight = 8\nwidth = 8\nquestion = { kind = "segmentation", classes = '
    f'["background", "lesion"] }}\n[model]\nname = "unet"\nwidths = [2, 2]\n{WINDOWS}'
)
WITH_LOCAL = TASKS["table"] + '[training]\nlocal = ["0.bias"]\n'
WITH_CODES = TASKS["table"].replace(
    "[model]", '[[data.features]]\nkind = "category"\nname = "sex"\nvalues = [0, 1]\n[model]'
)
LOGISTIC_MODEL = '[model]\nname = "logistic"'
MISTYPED = "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc3"
ROWS = "age,sick\n50,0\n60,1\n"
SHADES = np.arange(80, dtype=np.uint8).reshape(8, 10)


class Stage:
    """Once for all cases: tasks on a chain, and an account with ether and tokens."""

    def __init__(self, chain: LocalChain, folder: Path) -> None:
        self.chain, self.folder = chain, folder
        store = ArtifactStore(folder / "artifacts")
        (aggregator,) = chain.staked(Role.AGGREGATOR, 1, 1_000 * TOKEN)
        self.tasks: dict[str, int] = {}
        for name, text in TASKS.items():
            terms = task_params(parse_task_spec(text.encode()), store.put_file(text.encode()), aggregator.address)
            self.tasks[name] = chain.treasury.operator.propose(terms)
        self.tasks["other terms"] = chain.treasury.operator.propose(replace(terms, pool=terms.pool - 1))
        noise = store.put_file(b"name = ")
        self.tasks["no task file"] = chain.treasury.operator.propose(replace(terms, spec_hash=noise))
        self.rich = chain.funded()
        self.poor = chain.funded(tokens=0)
        self.dry = chain.funded()
        chain.rpc("anvil_setBalance", self.dry.address, "0x0")
        self.voter = chain.funded()
        registration.register(self.voter, 0, 0)
        home = folder / "home"
        for name in ("rich", "poor", "dry", "voter"):
            account = getattr(self, name).connection.account
            assert isinstance(account, LocalAccount)
            write_keystore(home / f"{name}.json", account, "secret", LIGHT_SCRYPT_N)
        write_private_file(home / "password", "secret\n")
        make_transport_key(home / "transport.key")
        chain.deployment.write(home / "deployment.json")
        ensure_certificates(folder / "tls")


class World:
    """A hospital's home that holds, with data that fit, but for what a case breaks."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.folder, self.home = stage, folder, folder / "home"
        self.until_over = ExitStack()
        shutil.copytree(stage.folder, folder, dirs_exist_ok=True)
        self.write("rows.csv", ROWS)
        shutil.copy(self.home / "rich.json", self.home / "key.json")
        self.settings = {
            "chain_url": stage.chain.node.url,
            "artifacts": str(folder / "artifacts"),
            "data": str(folder / "rows.csv"),
        }
        HospitalHome.create(self.home, self.settings, {"operators": "any", "models": "any", "columns": "any"})

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def change(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert re.search(old, text), (name, old)
        (self.folder / name).write_text(re.sub(old, lambda _: new, text))

    def set(self, **values: Any) -> None:
        """In the home's policy.toml."""
        path = self.home / "policy.toml"
        path.write_text(tomli_w.dumps(tomllib.loads(path.read_text()) | values))

    # Commands

    def hospital(self, command: str, *arguments: object) -> list[str]:
        return ["hospital", command, *map(str, arguments), "--home", str(self.home)]

    def voter(self, command: str, *arguments: object) -> list[str]:
        """The home has the same table, and the key of an account that is registered with nothing at stake."""
        return ["voter", command, *map(str, arguments), "--home", str(self.voter_home())]

    def voter_home(self, name: str = "voter", **policy: Any) -> Path:
        """With the key of one of the stage's accounts."""
        home = self.folder / "voter"
        if not home.exists():
            home.mkdir(mode=0o700)
            for file in ("password", "deployment.json"):
                shutil.copy(self.home / file, home)
            shutil.copy(self.home / f"{name}.json", home / "key.json")
            anything = {"operators": "any", "models": "any", "metrics": "any"}
            VoterHome.create(home, self.settings, anything | policy)
        return home

    def check(self, kind: str, data: str, *more: object) -> list[str]:
        """`check-data` of a task file: without a home, and without a chain."""
        task = self.write("task.toml", TASKS[kind])
        path = self.folder / data
        return ["hospital", "check-data", "--task-file", str(task), "--data", str(path), *map(str, more)]

    def operator_check(self, text: str) -> list[str]:
        return ["operator", "check", str(self.write("task.toml", text))]

    def on_chain(self, command: str, *arguments: object, group: str = "operator") -> list[str]:
        """Without an account."""
        chain = ("--rpc", self.stage.chain.node.url, "--address-book", self.home / "deployment.json")
        return [group, command, *map(str, (*arguments, *chain))]

    def operator(self, command: str, *arguments: object, who: str = "rich") -> list[str]:
        """By the key of one of the stage's accounts."""
        key = ("--keystore", self.home / f"{who}.json", "--password-file", self.home / "password")
        return self.on_chain(command, *arguments, *key)

    def join(self, task: str = "table", *more: object, yes: bool = True) -> list[str]:
        ca = self.folder / "tls" / "ca.crt"
        link = ("--superlink", "127.0.0.1:9092", "--ca-certificate", ca)
        return self.hospital("join", self.stage.tasks[task], *link, *more, *(["--yes"] if yes else []))

    def run(self, task: str = "table") -> list[str]:
        """`run` of a task that its owner has said yes to."""
        self.approve(task)
        return self.hospital("run", self.stage.tasks[task])

    def approve(self, task: str = "table", task_key: str | None = None, spec_hash: str | None = None) -> Path:
        number, ledger = self.stage.tasks[task], self.stage.rich
        approval = Approval(
            place=task_key or ledger.folder_name(number),
            spec_hash=spec_hash or ledger.tasks.params(number).spec_hash.hex(),
            approved_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
            superlink="127.0.0.1:1",
        )
        HospitalHome.open(self.home).approve(number, approval, b"")
        return self.home / "tasks" / f"{number}.toml"

    def init(self, *more: object) -> list[str]:
        """Of another home, from what this one has."""
        given = {
            "--chain-url": self.stage.chain.node.url, "--address-book": self.home / "deployment.json",
            "--artifacts": self.folder / "artifacts", "--data": self.folder / "rows.csv",
            "--keystore": self.home / "key.json", "--password-file": self.home / "password", "--operator": "any",
            "--home": self.folder / "new",
        } | dict(zip(more[::2], more[1::2], strict=True))  # fmt: skip
        return ["hospital", "init", *(str(word) for pair in given.items() for word in pair)]


@dataclass(frozen=True)
class Case:
    """`did`: what somebody did, as the guide says it; `break_` does it, and returns the command line.

    `said`: a part of the message, where … stands for any text.
    """

    did: str
    break_: Callable[[World], list[str]]
    said: str
