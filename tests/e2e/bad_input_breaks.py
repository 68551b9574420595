"""Ways to give `consilium` bad input: each returns what breaks a world, and gives the command line."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow
import pyarrow.parquet
import tomli_w
from bad_input_world import LOGISTIC, LOGISTIC_MODEL, NAME, ROWS, SHADES, TASKS, World
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.invites import FORMAT, Invite, sign_invite
from consilium_chain.rpc.local_node import free_port
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.config import PRIVACY_FILE, STATISTICS_FILE
from consilium_client.consent import Policy, read_policy
from consilium_client.home import HospitalHome, running_alone
from consilium_client.privacy.exact_statistics import ExactStatisticsRecord
from consilium_client.second_signature import SignedApproval, Statement, own_statement
from consilium_core.private_files import write_private_file
from consilium_operators.ensembles.folder import ENSEMBLE
from dicom_files import dicom
from eth_account import Account
from examples_read import read_table
from model_driver import written
from PIL import Image
from pydicom import uid
from task_files import DATA

OFFICER, STRANGER = (Account.from_key("0x" + digit * 64) for digit in "34")


def rows(content: str | bytes, mapping: str | None = None) -> Callable[[World], list[str]]:
    """A table for the task "table"."""

    def break_(world: World) -> list[str]:
        world.write("rows.csv", content)
        return world.check("table", "rows.csv", *mapped(world, mapping))

    return break_


def query(sql: str, **limits: int) -> str:
    """A mapping."""
    return tomli_w.dumps({"query": {"sql": sql, **limits}})


def server(address: str, mode: int = 0o600) -> Callable[[World], list[str]]:
    """A database server's address as the data of the task "table"."""

    def break_(world: World) -> list[str]:
        world.write("clinic.url", address).chmod(mode)
        return world.check("table", "clinic.url", *mapped(world, query("SELECT age, sick FROM person")))

    return break_


def times(content: str) -> Callable[[World], list[str]]:
    """A table for the task "times"."""

    def break_(world: World) -> list[str]:
        world.write("rows.csv", content)
        return world.check("times", "rows.csv")

    return break_


def joining(content: str) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        world.write("rows.csv", content)
        return world.join()

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


def series(
    measurements: str, outcomes: str = "stay,sick\n1,0\n2,1\n", mapping: str | None = None
) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        asked = folder("series", measurements_dot_csv=measurements, outcomes_dot_csv=outcomes)(world)
        return [*asked, *map(str, mapped(world, mapping))]

    return break_


def image(content: bytes) -> Callable[[World], list[str]]:
    return folder("images", ill__a_dot_png=png(SHADES), ill__b_dot_png=content)


def scan(content: bytes, kind: str = "scans") -> Callable[[World], list[str]]:
    return folder(kind, ill__a=content)


def ct(syntax: uid.UID = uid.ExplicitVRLittleEndian, pixels: Any = SHADES, **fields: Any) -> bytes:
    """A DICOM file of a patient by this name."""
    return dicom(pixels, syntax, **{"PatientName": NAME, "RescaleIntercept": "-50", **fields})


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
    """The command funds the treasury's task, or a new one of the account's `own`."""

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


def onnx_of_texts(world: World) -> list[str]:
    return ["operator", "export-onnx", str(written(world.folder, TASKS["text"]))]


def predicting(rows: str, task: str = TASKS["table"]) -> Callable[[World], list[str]]:
    def break_(world: World) -> list[str]:
        given = ["--input", str(world.write("rows.csv", rows)), "--output", str(world.folder / "new.csv")]
        return ["predict", str(written(world.folder, task)), *given]

    return break_


def predicting_by_half_an_ensemble(world: World) -> list[str]:
    (folder := world.folder / "both").mkdir()
    (folder / ENSEMBLE).write_text("{}")
    given = ["--input", str(world.write("rows.csv", "age\n50\n")), "--output", str(world.folder / "new.csv")]
    return ["predict", str(folder), *given]


def evaluating_nothing(world: World) -> list[str]:
    return ["operator", "evaluate", str(written(world.folder, TASKS["table"]))]


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


def profiled(world: World, name: str) -> list[str]:
    file = world.write("profile.toml", f'name = "{name}"')
    return world.hospital("set-profile", file, "--server", "http://127.0.0.1:1")


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


def invited(
    by: str = "", change: Callable[[bytes], bytes] = lambda raw: raw, **values: Any
) -> Callable[[World], list[str]]:
    """By the task's operator, or by one of the stage's accounts. `change`: of the file."""

    def break_(world: World) -> list[str]:
        ledger = getattr(world.stage, by) if by else world.stage.chain.treasury
        invite = Invite.model_validate(
            {
                "format": FORMAT, "deployment": world.stage.chain.deployment, "chain_url": world.stage.chain.node.url,
                "artifacts": [str(world.folder / "artifacts")], "task": world.stage.tasks["table"],
                "superlink": "127.0.0.1:9092", "authority": (world.folder / "tls" / "ca.crt").read_text(),
                "operator": ledger.address, "expires_at": int(time.time()) + 60, **values,
            }
        )  # fmt: skip
        file = world.write("heart.invite", change(sign_invite(invite, ledger.connection.signer).written))
        return [
            "hospital", "init", "--invite", str(file), "--data", str(world.folder / "rows.csv"), "--yes",
            "--home", str(world.folder / "new"),
        ]  # fmt: skip

    return break_


def co_signed(
    by: Any = OFFICER, change: Callable[[bytes], bytes] = lambda raw: raw, **values: Any
) -> Callable[[World], list[str]]:
    """The policy asks for the officer's signature. `values`: of the statement. `change`: of its file."""

    def break_(world: World) -> list[str]:
        world.set(approval={"by": [OFFICER.address]})
        ledger, number = world.stage.rich, world.stage.tasks["table"]
        spec_hash, policy = ledger.tasks.params(number).spec_hash, read_policy(world.home / "policy.toml", Policy)
        own = own_statement(policy, ledger, ledger.address, number, spec_hash, "2026-01-01")
        statement = Statement(**{**dict(own), **values})
        signature = "0x" + bytes(by.sign_message(statement.message).signature).hex()
        approval = SignedApproval(statement=statement, signer=by.address, signature=signature)
        file = world.write("signed.json", change(approval.written))
        return world.hospital("approve", number, "--signed", file)

    return break_


def unsigned(world: World) -> list[str]:
    world.set(approval={"by": [OFFICER.address]})
    return world.join()


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


def few_held_out(world: World) -> list[str]:
    world.write("rows.csv", measured(60).replace(",1\n", ",0\n", 25))
    return world.voter("use-table", world.stage.tasks["demanding"], "--data", world.folder / "rows.csv")


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


def report(change: Callable[[dict[str, Any]], object], compared: bool = False) -> Callable[[World], list[str]]:
    """A report of the dashboard's audit."""

    def break_(world: World) -> list[str]:
        file = json.loads((Path(__file__).parents[1] / "vectors" / "audit_report.json").read_text())
        change(file)
        chain = ["--deployment", str(world.home / "deployment.json"), "--chain-url", world.stage.chain.node.url]
        return ["verify-report", str(world.write("report.json", json.dumps(file))), *(chain if compared else [])]

    return break_


# One's own table, and public data


def measured(count: int) -> str:
    return "age,sick\n" + "".join(f"{number},{number % 2}\n" for number in range(count))


def drafting(label: str, content: str, *more: str) -> Callable[[World], list[str]]:
    """A task file for a table of one's own."""
    return lambda world: [
        "task", "new", "--from", str(world.write("rows.csv", content)), "--label", label, "--yes", *more,
        "--output", str(world.folder / "own.toml"),
    ]  # fmt: skip


def own_table(content: str, *more: object) -> Callable[[World], list[str]]:
    """The demo on a table of one's own."""
    return lambda world: [
        "demo", "--data", "table", "--file", str(world.write("rows.csv", content)), "--output",
        str(world.folder / "out"), "--label", "sick", *map(str, more),
    ]  # fmt: skip


def simulating(*more: str) -> Callable[[World], list[str]]:
    """A task on a table that fits it."""
    return lambda world: [
        "simulate", str(world.write("task.toml", TASKS["table"])), "--table",
        str(world.write("rows.csv", measured(60))), "--sites", "3", "--voters", "3", *more,
    ]  # fmt: skip


def unpublished(world: World) -> list[str]:
    """A network whose proxy is down."""
    proxy = f"http://127.0.0.1:{free_port()}"
    world.until_over.enter_context(patch.dict(os.environ, {"HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "NO_PROXY": ""}))
    return ["data", "fetch", "heart", "--to", str(world.folder / "data"), "--yes"]
