"""Bad input of every kind, as somebody gives it to `consilium`. What is then said, the guide has (docs/errors.md)."""

from __future__ import annotations

import datetime
import io
import json
import os
import re
import shutil
import socket
import struct
import tomllib
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow
import pyarrow.parquet
import tomli_w
from chain_driver import LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.local_node import free_port
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TOKEN, parse_task_spec
from consilium_client.config import PRIVACY_FILE, STATISTICS_FILE
from consilium_client.data.examples import MOST_ROWS
from consilium_client.home import Approval, HospitalHome, VoterHome, running_alone
from consilium_client.hospital.transport_key import make_transport_key
from consilium_client.privacy.exact_statistics import ExactStatisticsRecord
from consilium_client.voter import registration
from consilium_core.private_files import write_private_file
from consilium_operators.model_folder import CARD, INDEX, MODEL
from consilium_operators.model_server import LARGEST_BODY
from consilium_server.certificates import ensure_certificates
from eth_account.signers.local import LocalAccount
from examples_read import read_table
from model_driver import written
from PIL import Image
from task_files import DATA

NAME = "Mustermann"  # of a patient: in no message
WINDOWS = "[windows]\njoin = 14_900_000\n"  # whatever other tests let pass on this chain
LOGISTIC = f'{DATA}\n[model]\nname = "logistic"\n{WINDOWS}'
TASKS = {
    "table": f'name = "who will fall ill"\n{LOGISTIC}',
    "private": f'name = "in private"\n{LOGISTIC}[privacy]\nepsilon = 3.0\nmax_grad_norm = 1.0\n',
    "strict": f'name = "next to nothing"\n{LOGISTIC}[privacy]\nepsilon = 1e-6\nmax_grad_norm = 1.0\n',
    "exact": f'name = "to the last digit"\nstatistics = "exact"\n{LOGISTIC}',
    "unmasked": f'name = "in the open"\n{LOGISTIC}[update]\nmasked = false\n',
    "text": 'name = "notes"\n[data]\nkind = "text"\ntext = "note"\nlabel = "found"\nclasses = ["healthy", "ill"]\n'
    f'[model]\nname = "lora"\n{WINDOWS}',
    "images": 'name = "x-rays"\n[data]\nkind = "images"\nclasses = ["normal", "ill"]\nheight = 8\nwidth = 10\n'
    f'[model]\nname = "cnn"\nchannels = [4]\n{WINDOWS}',
}
WITH_CODES = TASKS["table"].replace(
    "[model]", '[[data.features]]\nkind = "category"\nname = "sex"\nvalues = [0, 1]\n[model]'
)
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
        """Of a voter's home with the same table, and the key of an account that is registered with nothing at stake."""
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

    def on_chain(self, command: str, *arguments: object) -> list[str]:
        """Of `operator`, without an account."""
        place = ("--rpc", self.stage.chain.node.url, "--address-book", self.home / "deployment.json")
        return ["operator", command, *map(str, (*arguments, *place))]

    def operator(self, command: str, *arguments: object, who: str = "rich") -> list[str]:
        """By the key of one of the stage's accounts."""
        key = ("--keystore", self.home / f"{who}.json", "--password-file", self.home / "password")
        return self.on_chain(command, *arguments, *key)

    def join(self, task: str = "table", *more: object, yes: bool = True) -> list[str]:
        ca = self.folder / "tls" / "ca.crt"
        place = ("--superlink", "127.0.0.1:9092", "--ca-certificate", ca)
        return self.hospital("join", self.stage.tasks[task], *place, *more, *(["--yes"] if yes else []))

    def run(self, task: str = "table") -> list[str]:
        """`run` of a task that its owner has said yes to."""
        self.approve(task)
        return self.hospital("run", self.stage.tasks[task])

    def approve(self, task: str = "table", place: str | None = None, spec_hash: str | None = None) -> Path:
        number, ledger = self.stage.tasks[task], self.stage.rich
        approval = Approval(
            place=place or ledger.folder_name(number),
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
    """`did`: what somebody did, as the guide says it; `break_` does it, and returns the command line."""

    did: str
    break_: Callable[[World], list[str]]


# What breaks things


def rows(content: str | bytes, mapping: str | None = None) -> Callable[[World], list[str]]:
    """A table for the task "table"."""

    def break_(world: World) -> list[str]:
        world.write("rows.csv", content)
        return world.check("table", "rows.csv", *mapped(world, mapping))

    return break_


def mapped(world: World, mapping: str | None) -> list[object]:
    return [] if mapping is None else ["--mapping", world.write("mapping.toml", mapping)]


def notes(content: str | bytes, mapping: str | None = None) -> Callable[[World], list[str]]:
    """A table for the task "text"."""

    def break_(world: World) -> list[str]:
        world.write("notes.csv", content)
        return world.check("text", "notes.csv", *mapped(world, mapping))

    return break_


def folder(kind: str, **files: str | bytes) -> Callable[[World], list[str]]:
    """Files by their path in a folder of texts or images, with __ for / and _dot_ for ."""

    def break_(world: World) -> list[str]:
        for name, content in files.items():
            world.write(f"folder/{name.replace('__', '/').replace('_dot_', '.')}", content)
        return world.check(kind, "folder")

    return break_


def image(content: bytes) -> Callable[[World], list[str]]:
    return folder("images", ill__a_dot_png=png(SHADES), ill__b_dot_png=content)


def archive(**arrays: Any) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        np.savez(stream := io.BytesIO(), allow_pickle=True, **arrays)
        world.write("images.npz", stream.getvalue())
        return world.check("images", "images.npz")

    return break_


def png(pixels: Any, kind: str = "PNG", **options: Any) -> bytes:
    one = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    one.save(stream := io.BytesIO(), kind, **options)
    return stream.getvalue()


def bomb() -> bytes:
    """100,000 × 100,000 pixels, as its header says."""
    parts = [b"IHDR" + struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0), b"IDAT"]
    chunks = [struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def parquet(**columns: Any) -> bytes:
    pyarrow.parquet.write_table(pyarrow.table(columns), stream := io.BytesIO())
    return stream.getvalue()


def proposing(text: str = LOGISTIC, *more: object, who: str = "rich", yes: bool = True) -> Callable[[World], list[str]]:
    """`propose` of a task file of nobody else's; the last of `more` count."""

    def break_(world: World) -> list[str]:
        task = world.write("task.toml", f'name = "{who} asks"\n{text}')
        given = ["--artifacts", world.folder / "artifacts", "--aggregator", "0x" + "77" * 20, "--not-private", *more]
        return world.operator("propose", task, *given, *(["--yes"] if yes else []), who=who)

    return break_


def proposed_already(world: World) -> list[str]:
    text = f'name = "once"\n{LOGISTIC}'
    store, ledger = ArtifactStore(world.folder / "artifacts"), world.stage.rich
    ledger.operator.propose(task_params(parse_task_spec(text.encode()), store.put_file(text.encode()), ledger.address))
    task = world.write("task.toml", text)
    more = ("--artifacts", world.folder / "artifacts", "--aggregator", "0x" + "77" * 20, "--not-private", "--yes")
    return world.operator("propose", task, *more)


def proposed_without_privacy(world: World) -> list[str]:
    task = world.write("task.toml", f'name = "in the open"\n{LOGISTIC}')
    return world.operator("propose", task, "--artifacts", world.folder / "artifacts", "--yes")


def stopping(task: str | int = "table", *more: object) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        number = world.stage.tasks[task] if isinstance(task, str) else task
        return world.operator("stop", number, *more)

    return break_


def funding(amount: int, *more: object, own: bool = False) -> Callable[[World], list[str]]:
    """Of the treasury's task, or of a new one of the account's `own`."""

    def break_(world: World) -> list[str]:
        number = world.stage.tasks["table"]
        if own:
            number = world.stage.rich.operator.propose(world.stage.rich.tasks.params(number))
        return world.operator("fund", number, amount, *more)

    return break_


def downloading(task: str | int = "table", output: str = "new", lost: bool = False) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        number = world.stage.tasks[task] if isinstance(task, str) else task
        if lost:
            shutil.rmtree(world.folder / "artifacts")
            (world.folder / "artifacts").mkdir()
        places = ("--artifacts", world.folder / "artifacts", "--output", world.folder / output)
        return world.on_chain("download-model", number, *places)

    return break_


def model(break_: Callable[[Path], object]) -> Callable[[World], list[str]]:
    """A folder of a model, in which something is not as it was written."""

    def serve(world: World) -> list[str]:
        folder = written(world.folder, TASKS["table"])
        break_(folder)
        return ["operator", "serve-model", str(folder), "--port", str(free_port())]

    return serve


def predicting(rows: str, task: str = TASKS["table"]) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        given = ["--input", str(world.write("rows.csv", rows)), "--output", str(world.folder / "new.csv")]
        return ["predict", str(written(world.folder, task)), *given]

    return break_


def evaluating(rows: str) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        given = ["--data", str(world.write("rows.csv", rows)), "--site-column", "site"]
        return ["operator", "evaluate", str(written(world.folder, TASKS["table"])), *given]

    return break_


def taken_port(world: World) -> list[str]:
    listening = world.until_over.enter_context(socket.socket())
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    folder = written(world.folder, TASKS["table"])
    return ["operator", "serve-model", str(folder), "--port", str(listening.getsockname()[1])]


def linked(world: World) -> list[str]:
    world.write("secret.txt", NAME)
    world.write("folder/ill/a.txt", "a note of some words")
    (world.folder / "folder" / "ill" / "b.txt").symlink_to("../../secret.txt")
    return world.check("text", "folder")


def changed(name: str, old: str, new: str) -> Callable[[World], list[str]]:
    """A file that a node starts with."""

    def break_(world: World) -> list[str]:
        command = world.run()
        world.change(name, old, new)
        return command

    return break_


def gone(name: str) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        command = world.run()
        (world.folder / name).unlink()
        return command

    return break_


def open_to_all(name: str) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        (world.folder / name).chmod(0o644)
        return world.run()

    return break_


def policy(task: str = "table", **values: Any) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        world.set(**values)
        return world.join(task)

    return break_


def policy_changed(**values: Any) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        command = world.run()
        world.set(**values)
        return command

    return break_


def spent(world: World) -> list[str]:
    """A ledger of another task's dear rounds, and an owner who allows little more."""
    charge = {"noise_multiplier": 0.8, "sample_rate": 0.5, "steps": 20, "delta": 1e-5}
    lines = [json.dumps({"task": "1-0x0-1", "round": number, **charge}) + "\n" for number in range(1, 6)]
    write_private_file(world.home / PRIVACY_FILE, "".join(lines))
    world.set(max_epsilon=8.0)
    return world.join("private")


def torn_ledger(world: World) -> list[str]:
    write_private_file(world.home / PRIVACY_FILE, '{"task": "x"}\n')
    return world.join("private")


def counted(rows: str, old: str = "", new: str = "") -> Callable[[World], list[str]]:
    """These rows were counted exactly in another task, with a part of its file changed."""

    def break_(world: World) -> list[str]:
        schema = parse_task_spec(TASKS["exact"].replace(old, new).encode()).data
        assert isinstance(schema, TableSchema)
        earlier = read_table(world.write("earlier.csv", f"age,sick\n{rows}"), schema)
        ExactStatisticsRecord(world.home / STATISTICS_FILE).give("1-0x0-1", earlier, schema)
        world.set(exact_statistics=True)
        return world.join("exact")

    return break_


def torn_list(world: World) -> list[str]:
    write_private_file(world.home / STATISTICS_FILE, '{"task": "x"}\n')
    world.set(exact_statistics=True)
    return world.join("exact")


def keyless_list(world: World) -> list[str]:
    command = counted(ROWS.removeprefix("age,sick\n"))(world)
    (world.home / STATISTICS_FILE).with_suffix(".key").unlink()
    return command


def broken_key(world: World) -> list[str]:
    command = counted(ROWS.removeprefix("age,sick\n"))(world)
    write_private_file((world.home / STATISTICS_FILE).with_suffix(".key"), "key")
    return command


def approved(*more: str, **values: str) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        world.approve("table", **values)
        return world.hospital("run", *more)

    return break_


def approval_torn(world: World) -> list[str]:
    world.approve().write_text("place = ")
    return world.hospital("run", world.stage.tasks["table"])


def running(world: World) -> list[str]:
    """As by another process."""
    number = world.stage.tasks["table"]
    world.until_over.enter_context(running_alone(HospitalHome.open(world.home).runtime(number), number))
    return world.run()


def account(name: str) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        shutil.copy(world.home / f"{name}.json", world.home / "key.json")
        return world.join()

    return break_


def store(change: Callable[[Path], object]) -> Callable[[World], list[str]]:
    """The table task's file in the artifact store."""

    def break_(world: World) -> list[str]:
        digest = world.stage.rich.tasks.params(world.stage.tasks["table"]).spec_hash.hex()
        change(world.folder / "artifacts" / f"file-{digest}")
        return world.run()

    return break_


def elsewhere(world: World, place: str) -> list[str]:
    """The store is there alone."""
    world.change("home/node.toml", r'artifacts = ".*"', f'artifacts = "{place}"')
    return world.hospital("show", world.stage.tasks["table"])


def book(**values: Any) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        path = world.home / "deployment.json"
        replace(Deployment.read(path), **values).write(path)
        return world.hospital("tasks")

    return break_


def unreachable(world: World) -> list[str]:
    command = world.run()
    world.change("home/node.toml", r'chain_url = ".*"', f'chain_url = "http://127.0.0.1:{free_port()}"')
    return command


def voting(
    command: str, *arguments: object, who: str = "voter", task: str = "", **policy: Any
) -> Callable[[World], list[str]]:
    """`task`: one of the stage's, whose number ends the command line."""

    def break_(world: World) -> list[str]:
        world.voter_home(who, **policy)
        return world.voter(command, *arguments, *([world.stage.tasks[task]] if task else []))

    return break_


def voting_twice(world: World) -> list[str]:
    world.until_over.enter_context(running_alone(world.voter_home()))
    return world.voter("run")


def one_class(world: World) -> list[str]:
    world.write("rows.csv", "age,sick\n50,0\n60,0\n")
    return world.voter("use-table", world.stage.tasks["table"], "--data", world.folder / "rows.csv")


def certificate(world: World) -> list[str]:
    world.write("tls/ca.crt", "-----BEGIN CERTIFICATE-----\n")
    return world.join()


def task_of(model: str, data: str = DATA) -> Callable[[World], list[str]]:
    return lambda world: world.operator_check(f'name = "a task"\n{data}\n{model}\n')


def named(name: str) -> Callable[[World], list[str]]:
    """`name`: as TOML has it between quotation marks."""
    return lambda world: world.operator_check(f'name = "{name}"\n{DATA}\n{LOGISTIC_MODEL}\n')


def changed_key(world: World) -> list[str]:
    write_private_file(world.home / "transport.key", "-----BEGIN OPENSSH PRIVATE KEY-----\n")
    return world.join()


def changed_log(world: World) -> list[str]:
    write_private_file(world.home / "audit.jsonl", '{"sequence": 1}\n')
    return world.run()


HEAD = "age,sick\n"
CODED = "[columns]\nsick = { column = 'dx', codes = { n = 0, y = 1 } }\n"
LOGISTIC_MODEL = '[model]\nname = "logistic"'


def measured(count: int) -> str:
    return "age,sick\n" + "".join(f"{number},{number % 2}\n" for number in range(count))


def drafting(label: str, content: str) -> Callable[[World], list[str]]:
    """A task file for a table of one's own."""
    return lambda world: [
        "task", "new", "--from", str(world.write("rows.csv", content)), "--label", label, "--yes",
        "--output", str(world.folder / "own.toml"),
    ]  # fmt: skip


def own_table(content: str, *more: object) -> Callable[[World], list[str]]:
    """The demo on a table of one's own."""
    return lambda world: [
        "demo", "--data", "table", "--file", str(world.write("rows.csv", content)), "--output",
        str(world.folder / "out"), "--label", "sick", *map(str, more),
    ]  # fmt: skip


def unpublished(world: World) -> list[str]:
    """A network whose proxy is down."""
    proxy = f"http://127.0.0.1:{free_port()}"
    world.until_over.enter_context(patch.dict(os.environ, {"HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "NO_PROXY": ""}))
    return ["data", "fetch", "heart", "--to", str(world.folder / "data"), "--yes"]


AREAS: dict[str, list[Case]] = {
    "Tables": [
        Case("the path is mistyped", lambda w: w.check("table", "row.csv")),
        Case("the file is empty", rows("")),
        Case("it has a header line alone", rows(HEAD)),
        Case("it is an Excel workbook", rows(b"PK\x03\x04" + NAME.encode())),
        Case("it is in Latin-1", rows(f"{HEAD}50,0\n{NAME}\xfc,1\n".encode("latin-1"))),
        Case("it is in UTF-16", rows(f"{HEAD}50,0\n".encode("utf-16"))),
        Case("it holds a zero byte", rows(f"{HEAD}50\0,0\n")),
        Case("columns are separated by semicolons", rows("age;sick\n50;0\n")),
        Case("there is no header line", rows(f"{NAME},0\n60,1\n")),
        Case("a column is missing", rows("sick\n1\n")),
        Case("a column is not the task's", rows(f"age,sick,name\n50,0,{NAME}\n")),
        Case("a column stands twice", rows("age,age,sick\n50,50,0\n")),
        Case("a line has too few fields", rows(f"{HEAD}50,0\n60\n")),
        Case("a quotation mark is not closed", rows(f'{HEAD}"50,0\n60,1\n')),
        Case("a quotation mark is amidst a cell", rows(f'{HEAD}50,0\n"50"1,0\n')),
        Case("a cell is as long as a book", rows(f"{HEAD}{'9' * 140_000},0\n")),
        Case("a text stands where a number belongs", rows(f"{HEAD}50,0\n{NAME},1\n")),
        Case("a date stands where a number belongs", rows(f"{HEAD}17.05.1971,0\n")),
        Case("decimal commas", rows(f'{HEAD}"50,5",0\n')),
        Case("separators between thousands", rows(f'{HEAD}"1,050.5",0\n')),
        Case("nan", rows(f"{HEAD}nan,0\n")),
        Case("a label that is no class", rows(f"{HEAD}50,0\n60,2\n")),
        Case("a row without a label", rows(f"{HEAD}50,\n")),
        Case("a column without a value", rows(f"{HEAD},0\n?,1\n")),
        Case("more rows than can be counted", rows(HEAD + "50,0\n" * (MOST_ROWS + 1))),
        Case("Parquet that is cut off", rows(parquet(age=[50], sick=[0])[:-9])),
        Case(
            "Parquet with dates", rows(parquet(age=pyarrow.array([571], pyarrow.date32()), sick=[0]))),
        Case(
            "the table no longer fits when the node starts", changed("rows.csv", "60,1", f"{NAME},1")),
    ],
    "Mappings": [
        Case(
            "the path is mistyped", lambda w: w.check("table", "rows.csv", "--mapping", w.folder / "map.toml")),
        Case("it is not TOML", rows(ROWS, "[columns\n")),
        Case("it names a column that the task has not", rows(ROWS, "[columns]\nweight = 'kg'\n")),
        Case("it has an unknown key", rows(ROWS, "[file]\nseparator = ';'\n")),
        Case(
            "its codes are no classes of the task's",
            rows(ROWS, "[columns]\nsick = { codes = { n = 0, y = 5 } }\n")),
        Case(
            "its codes lack what a cell holds", rows(f"Name,age,dx\n{NAME},50,n\n{NAME},60,{NAME}\n", CODED)),
        Case("it counts columns, and the file is Parquet", rows(
            parquet(age=[50], sick=[0]), "[file]\nheader = false\n[columns]\nage = 1\nsick = 2\n"
        )),
    ],
    "Texts": [
        Case("a text is empty", notes(f"note,found\n{NAME} is well,healthy\n,ill\n")),
        Case("a label is no class's name", notes(f"note,found\n{NAME} is well,fine\n")),
        Case("a column is not the task's", notes(f"note,found,name\nx,ill,{NAME}\n")),
        Case("Parquet has numbers for texts", notes(parquet(note=[5], found=["ill"]))),
        Case("a folder is no class", folder("text", ill__a_dot_txt="x", il__b_dot_txt="x")),
        Case("a folder of nothing", folder("text", _dot_DS_Store="")),
        Case("a Word file among them", folder("text", ill__letter_dot_docx=NAME)),
        Case("a file in Latin-1", folder("text", ill__a_dot_txt=f"{NAME}\xfc".encode("latin-1"))),
        Case("a file as long as a book", folder("text", ill__a_dot_txt=NAME * 20_000)),
        Case("a file without a letter", folder("text", ill__a_dot_txt=" \n")),
        Case("a link leads out of the folder", linked),
        Case(
            "the list names a file outside", folder("text", labels_dot_csv="file,label\n../rows.csv,ill\n")),
        Case(
            "the list names a file that is not there", folder("text", labels_dot_csv="file,label\na.txt,ill\n")),
        Case(
            "the list names a file twice",
            folder("text", labels_dot_csv="file,label\na.txt,ill\na.txt,healthy\n", a_dot_txt="x")),
        Case("two names read the same", folder("text", **{"ill__\u00e9_dot_txt": "x", "ill__e\u0301_dot_txt": "x"})),
    ],
    "Images": [
        Case("a file without a byte", image(b"")),
        Case("a file is cut off", image(png(SHADES)[:-30])),
        Case("a text that is called .png", image(NAME.encode())),
        Case("a header that says 100,000 × 100,000 pixels", image(bomb())),
        Case("16 bits a channel", image(png(SHADES.astype(np.uint16) * 257))),
        Case(
            "an animation", image(png(SHADES, save_all=True, append_images=[Image.fromarray(255 - SHADES)]))),
        Case(
            "CMYK, as for print", image(png(Image.fromarray(SHADES).convert("CMYK"), "JPEG"))),
        Case(
            "transparent parts", image(png(Image.merge("LA", [Image.fromarray(SHADES)] * 2)))),
        Case("a file that systems leave behind", folder("images", ill__Thumbs_dot_db=b"x")),
        Case("a table, where images belong", lambda w: w.check("images", "rows.csv")),
        Case(
            "an archive with arrays of other names", archive(train_images=SHADES[None], train_labels=np.array([1]))),
        Case(
            "an archive with a pickle in it", archive(images=np.array([{"name": NAME}]), labels=np.array([1]))),
        Case(
            "an archive with a label that is no class", archive(images=SHADES[None], labels=np.array([2]))),
    ],
    "Your table, and public data": [
        Case("the label is no column of it", drafting("weight", ROWS)),
        Case("the label is a measurement", drafting("age", measured(30))),
        Case("nothing is left but the label", drafting("sick", "sick\n0\n1\n")),
        Case("a row names no hospital", own_table("age,sick,site\n50,0,A\n60,1,\n", "--sites", "site")),
        Case("voters would get no rows", own_table(measured(6), "--hospitals", 3)),
        Case("nobody accepts the licence", lambda w: ["data", "fetch", "heart", "--to", str(w.folder / "data")]),
        Case("the publisher does not answer", unpublished),
        Case("data were not fetched before", lambda w: [
            "demo", "--data", "heart", "--data-dir", str(w.folder / "none"), "--output", str(w.folder / "out"),
        ]),
    ],
    "Key and password": [
        Case("the password is wrong", changed("home/password", "secret", "Secret")),
        Case("there is no password file", gone("home/password")),
        Case("others can read the password", open_to_all("home/password")),
        Case("others can read the key file", open_to_all("home/key.json")),
        Case("there is no key file", gone("home/key.json")),
        Case("the key file is damaged", changed("home/key.json", "^{", "")),
        Case("the node key is of another kind", changed_key),
        Case("the aggregator's certificate is none", certificate),
    ],
    "Home and settings": [
        Case(
            "there is no home in the folder", lambda w: ["hospital", "status", "--home", str(w.folder / "none")]),
        Case("there is one already", lambda w: w.init("--home", w.home)),
        Case(
            "a second home is for the same contracts", lambda w: [
                "hospital", "init", "--like", str(w.home), "--home", str(w.folder / "new"),
                "--address-book", str(w.home / "deployment.json"),
            ]),
        Case("a second home is like another, and has other data", lambda w: w.init("--like", w.home)),
        Case(
            "`init` is given a table that is not there", lambda w: w.init("--data", w.folder / "none.csv")),
        Case("`init` is given hours in words", lambda w: w.init("--hours", "at night")),
        Case("`init` is given an operator that is no account", lambda w: w.init("--operator", "me")),
        Case("node.toml is not TOML", changed("home/node.toml", "data = .*", "data = ")),
        Case("node.toml has an unknown setting", changed("home/node.toml", "data = ", "date = ")),
        Case("a task number that is none", lambda w: w.hospital("show", "0")),
        Case("an unknown option", lambda w: w.hospital("status", "--every")),
    ],
    "Policy": [
        Case("there is no policy", gone("home/policy.toml")),
        Case("it has an unknown rule", changed("home/policy.toml", "^", "colour = 'red'\n")),
        Case("the operator is another", policy(operators=["0x" + "77" * 20])),
        Case("a column is not allowed", policy(columns=["weight", "sick"])),
        Case("the aggregator would see single updates", policy("unmasked")),
        Case("the bond is too high", policy(max_bond=100)),
        Case("the task has too many rounds", policy(max_rounds=2)),
        Case("the task may last too long", policy(max_days=30)),
        Case("one fault costs too much of the bond", policy(max_slash_percent=10)),
        Case("cohorts are slashed that are hardly harmful", policy(min_harm=0.1)),
        Case("its cohorts may be too small", policy(min_cohort=5)),
        Case("this hospital has too few rows", policy(min_rows=50)),
        Case("a round is too few steps of training", policy(min_steps=4)),
        Case("exact statistics are not allowed", policy("exact")),
        Case("it was narrowed after the yes", policy_changed(models=["mlp"])),
    ],
    "Privacy budget": [
        Case("the hospital has one, and the task is not private", policy(max_epsilon=5.0)),
        Case("the hospital's is too small for the task", policy("private", max_epsilon=0.5)),
        Case("it is spent on other tasks", spent),
        Case("the task's is so small that no noise is enough", lambda w: w.join("strict")),
        Case("the ledger of what was spent is damaged", torn_ledger),
    ],
    "Exact statistics": [
        Case("nearly the same rows were counted before", counted("50,0\n")),
        Case("rows were counted before under another schema", counted("50,0\n", "max = 120.0", "max = 121.0")),
        Case("the list of counted rows is damaged", torn_list),
        Case("its key is gone", keyless_list),
        Case("its key is damaged", broken_key),
    ],
    "The yes to a task": [
        Case("nobody said yes", lambda w: w.hospital("run", w.stage.tasks["table"])),
        Case("nothing is approved, and no task is named", lambda w: w.hospital("run")),
        Case("nobody is there to say it", lambda w: w.join(yes=False)),
        Case("the task file was altered after it", approved(spec_hash="0" * 64)),
        Case("it was given on another chain", approved(place="1-0x00-1")),
        Case("its file is damaged", approval_torn),
        Case("the node runs already", running),
        Case(
            "`leave`, of a task that was never joined", lambda w: w.hospital("leave", w.stage.tasks["table"], "--yes")),
    ],
    "Voters": [
        Case("there is no home in the folder", lambda w: ["voter", "status", "--home", str(w.folder / "none")]),
        Case("there is one already", lambda w: ["voter", "init", "--home", str(w.voter_home())]),
        Case("the account is no voter yet", voting("run", who="rich")),
        Case("nobody is there to say yes to a stake", voting("register", "--stake", "10")),
        Case("a stake of more tokens than there are", voting("register", "--stake", 10**9, "--yes")),
        Case("a stake without ether for gas", voting("register", "--stake", 0, "--yes", who="dry")),
        Case("too little stake is free", voting("run", "--task", task="table")),
        Case("the metric is not allowed", voting("run", "--task", task="table", metrics=["auc"])),
        Case("the policy has an unknown metric", voting("tasks", metrics=["luck"])),
        Case("another process judges from the home", voting_twice),
        Case("a table that does not fit the task", lambda w: w.voter(
            "use-table", w.stage.tasks["text"], "--data", w.folder / "rows.csv"
        )),
        Case("rows of one class alone", one_class),
        Case("an evaluation is disclosed of a round without a ballot", lambda w: w.voter(
            "disclose-evaluation", w.stage.tasks["table"], 1, "--out", w.folder / "opened"
        )),
        Case("a file that is no disclosure of an evaluation", lambda w: [
            "verify-evaluation", str(w.write("opened", "{}")), "--data", str(w.folder / "rows.csv"),
            "--artifacts", str(w.folder / "artifacts"),
        ]),
    ],
    "Tasks": [
        Case("the artifact store is not there", store(lambda file: shutil.rmtree(file.parent))),
        Case("it is at a URL that nothing here reads", lambda w: elsewhere(w, "ftp://mirror.example")),
        Case("nobody answers at its URL", lambda w: elsewhere(w, f"http://127.0.0.1:{free_port()}/key")),
        Case("its URL has a password", lambda w: elsewhere(w, "https://me:secret@mirror.example")),
        Case("there is no task of the number", lambda w: w.hospital("show", 999_999)),
        Case("its file is not in the store", store(Path.unlink)),
        Case("its file in the store was altered", store(lambda f: f.write_text("name = ''"))),
        Case("its file is no task file", lambda w: w.join("no task file")),
        Case("its terms on chain are others than its file's", lambda w: w.join("other terms")),
        Case(
            "a task file that is not there", lambda w: ["operator", "check", str(w.folder / "none.toml")]),
        Case("one that is not TOML", lambda w: w.operator_check("name = ")),
        Case("one whose name turns the text round", named(r"who \u202elli llaf lliw")),
        Case("one whose name is as long as a book", named("x" * 10_000)),
        Case("one with an unknown model", task_of('[model]\nname = "forest"')),
        Case("one with a model for other data", task_of('[model]\nname = "cnn"')),
        Case(
            "one with a class twice", task_of(LOGISTIC_MODEL, DATA.replace('"no", "yes"', '"no", "no"'))),
        Case(
            "one with a range the wrong way round", task_of(LOGISTIC_MODEL, DATA.replace("120.0", "-1.0"))),
        Case(
            "one with a misspelt setting", task_of(f"{LOGISTIC_MODEL}\n[training]\nepoch = 3")),
    ],
    "Operators": [
        Case("the task file does not hold", proposing(f'{DATA}\n[model]\nname = "forest"')),
        Case("no aggregator is named", lambda w: w.operator(
            "propose", w.write("task.toml", TASKS["private"]), "--artifacts", w.folder / "artifacts", "--yes"
        )),
        Case("the aggregator is no account", proposing(LOGISTIC, "--aggregator", "me")),
        Case(
            "the aggregator's account is mistyped", proposing(LOGISTIC, "--aggregator", MISTYPED)),
        Case("the task file has no privacy, and `--not-private` is missing", proposed_without_privacy),
        Case("nobody is there to say yes to a proposal", proposing(yes=False)),
        Case("the account has no tokens for the pool", proposing(who="poor")),
        Case("the account has no ether for gas", proposing(who="dry")),
        Case("the same file is proposed already", proposed_already),
        Case("there is no artifact store to put the file into", proposing(LOGISTIC, "--artifacts", "none/at/all")),
        Case("to a pool of somebody else's is added", funding(1, "--yes")),
        Case("nothing is added to a pool", funding(0, "--yes")),
        Case("more is added than the aggregator's bond outweighs", funding(10**6, "--yes", own=True)),
        Case("nobody is there to say yes to adding", funding(1, own=True)),
        Case("a task of somebody else's is stopped", stopping("table", "--yes")),
        Case("a task that there is not is stopped", stopping(999_999, "--yes")),
        Case("nobody is there to say yes to a stop", stopping()),
        Case("a task that there is not is watched", lambda w: w.on_chain("watch", 999_999)),
        Case("a model of a task that there is not", downloading(999_999)),
        Case("a model of a task that nobody has trained", downloading()),
        Case("a model, and the task's file is not in the store", downloading(lost=True)),
        Case("a model is to be written where something is", downloading(output="artifacts")),
        Case("the folder of a model is not there", lambda w: ["operator", "serve-model", str(w.folder / "none")]),
        Case("a folder that holds no model", lambda w: ["operator", "serve-model", str(w.folder)]),
        Case("its model.json is none", model(lambda folder: (folder / INDEX).write_text("{}"))),
        Case("its parameters were altered", model(lambda folder: (folder / MODEL).write_bytes(b"other"))),
        Case("one of its files is missing", model(lambda folder: (folder / CARD).unlink())),
        Case("the port is taken", taken_port),
        Case("a value outside the model's range", predicting("age\n50\n5718\n")),
        Case("a code that the model does not know", predicting("age,sex\n50,7\n", WITH_CODES)),
        Case("the tracking server does not answer", lambda w: w.on_chain(
            "watch", w.stage.tasks["table"], "--mlflow", f"http://127.0.0.1:{free_port()}"
        )),
        Case("each row is its own site", evaluating("".join(["age,sick,site\n", *(f"9,1,{k}\n" for k in range(257))]))),
    ],
    "Audit logs": [
        Case("a line of the node's log was changed", changed_log),
        Case("an export is not there", lambda w: ["verify-audit", str(w.folder / "none.jsonl")]),
        Case("a file that is no export", lambda w: ["verify-audit", str(w.folder / "rows.csv")]),
    ],
    "Chain and contracts": [
        Case("no node answers", unreachable),
        Case("there is no address book", gone("home/deployment.json")),
        Case("the address book is malformed", changed("home/deployment.json", "^{", "")),
        Case("it is of another chain", book(chain_id=1)),
        Case("nothing is at its addresses", book(tasks="0x" + "77" * 20)),
        Case("the account has no ether", account("dry")),
        Case("the account has no tokens for the bond", account("poor")),
        Case("the faucet has less", lambda w: [
            "chain", "local", "fund", w.stage.poor.address, "--tokens", "1", "--ether", str(10**12), "--rpc",
            w.stage.chain.node.url, "--address-book", str(w.home / "deployment.json"),
        ]),
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Sent:
    """`did`: what somebody sent to a served model, as the guide says it; bytes are the body of a prediction."""

    did: str
    body: bytes = b""
    path: str = "/predict"
    media_type: str = "application/json"


def asked(*given: object) -> bytes:
    return json.dumps({"rows": given}).encode()


# To a model of the task "table".
REQUESTS = [
    Sent("no JSON", NAME.encode()),
    Sent("it is not said to be JSON", asked({"age": 50}), media_type="text/plain"),
    Sent("JSON of another form", b"[]"),
    Sent("no row", asked()),
    Sent("a row without a column", asked({"age": 50}, {})),
    Sent("a column that the task does not have", asked({"age": 50, NAME: 1})),
    Sent("a text where a number belongs", asked({"age": 50}, {"age": NAME})),
    Sent("a value outside the model's range", asked({"age": 50}, {"age": -1})),
    Sent("a decimal comma", asked({"age": "1,5"})),
    Sent("too many rows", asked(*[{"age": 50}] * 1_001)),
    Sent("too many bytes", b" " * (LARGEST_BODY + 1)),
    Sent("another address", asked({"age": 50}), path="/"),
]
