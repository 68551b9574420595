"""Roles as the compose files run them, without an engine: their mounts, user, read-only root, and a process 1."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import tomli_w
from chain_driver import LocalChain, task_params
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.rpc.local_node import free_port
from consilium_chain.settings import read_settings
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params as params_of
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.home import HospitalHome, VoterHome
from consilium_client.hospital.transport_key import make_transport_key
from consilium_client.voter.registration import register
from consilium_core.private_files import write_private_file
from consilium_lab.demo.homes import approve
from consilium_server.config import AggregatorSettings
from deploy_driver import as_command, containers, words
from file_server import FileServer
from images_driver import Container, Environment
from postgres_driver import Postgres
from redis_driver import Redis, running_redis
from test_compose import is_ours, read, target
from voter_driver import ROWS, TASK

pytestmark = [
    pytest.mark.deep,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root makes namespaces"),
]
USER = 10001
PATIENCE = 300.0  # seconds, on a busy machine
Containers = dict[str, Container]


def until(look: Callable[[], Any], log: Path) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < end, log.read_text()[-4000:]
        time.sleep(0.3)
    return found


def variables(role: str) -> dict[str, str]:
    """ENV of the container file."""
    found: dict[str, str] = {}
    for line in containers().all(role, "ENV"):
        found |= dict(re.findall(r"(\w+)=(\S+)", line))
    found["PATH"] = "/opt/consilium/bin:/usr/bin:/bin"
    return found


@contextmanager
def running(container: Container, log: Path, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = container.start(log, *command)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def stop(process: subprocess.Popen[bytes], grace: float) -> None:
    """As an engine would: its process 1 is told, and has so long."""
    (inside,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(inside), signal.SIGTERM)
    process.wait(grace)


def given(path: Path, *more: Path) -> Path:
    """To the containers' user."""
    for one in (path, *path.rglob("*"), *more):
        os.chown(one, USER, USER)
    return path


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    with running_redis(tmp_path_factory.mktemp("broker") / "redis") as server:
        yield server


def prepared(folder: Path, chain: LocalChain, account: Ledger, settings: dict[str, dict[str, Any]]) -> Path:
    """What prepare.sh would write, of another chain, database and broker."""
    secrets = folder / "secrets"
    secrets.mkdir(parents=True)
    write_keystore(secrets / "key.json", account.connection.signer, "secret", LIGHT_SCRYPT_N)
    (secrets / "password").write_text("secret\n")
    for name, own in settings.items():
        (secrets / f"{name}.toml").write_text(tomli_w.dumps(own))
    for path in secrets.iterdir():
        path.chmod(0o400)
    chain.deployment.write(folder / "deployment.json")
    return given(folder)


def operators(environment: Environment, settings: Path, folder: Path, *more: tuple[str, Path, str]) -> Containers:
    """The operator's own services with the compose file's mounts; volumes are below `folder`."""
    found = read("operator", CONSILIUM_SETTINGS=str(settings))
    containers_ = {}
    for name, service in found["services"].items():
        if not is_ours(service):
            continue
        mounts = list(more)
        mounts += [("ro", Path(found["secrets"][one]["file"]), f"/run/secrets/{one}") for one in service["secrets"]]
        mounts += [("ro", Path(found["configs"][one["source"]]["file"]), one["target"]) for one in service["configs"]]
        for mount in service["volumes"]:
            source, where = mount.split(":")
            (folder / source).mkdir(exist_ok=True, parents=True)
            mounts.append(("rw", given(folder / source), where))
        containers_[name] = Container(environment, mounts, empty(folder / f"root-{name}"), variables(target(service)))
    return containers_


def nodes(environment: Environment, file: str, home: Path, folder: Path) -> Container:
    """A hospital's or a voter's, of `home`; its password and its rows are below `folder`."""
    values = {"HOME": home, "DATA": folder / "data", "PASSWORD_FILE": folder / "password"}
    found = read(file, **{f"CONSILIUM_{name}": str(value) for name, value in values.items()})
    mounts = [
        ("rw", given(empty(folder / "own")), "/var/lib/consilium"),  # the image's volume, which nobody named
        ("ro", Path(found["secrets"]["password"]["file"]), "/run/secrets/password"),
    ]
    for mount in found["services"]["node"]["volumes"]:
        source, where, *mode = mount.split(":")
        mounts.append(("ro" if mode else "rw", Path(source), where))
    return Container(environment, mounts, empty(folder / "root"), variables(file))


def home_files(folder: Path, account: Ledger) -> Path:
    """Key, rows and password, the latter two beside the home. The home."""
    home = empty(folder / "home")
    write_keystore(home / "key.json", account.connection.signer, "secret", LIGHT_SCRYPT_N)
    write_private_file(folder / "password", "secret\n")
    empty(folder / "data")
    (folder / "data" / "rows.csv").write_text(ROWS)
    return home


def empty(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def test_confined_containers_play_a_task(
    server: Environment, client: Environment, local_chain: LocalChain, postgres: Postgres, broker: Redis, tmp_path: Path
) -> None:
    """API, worker, aggregator, a hospital and a voter, from a proposal to the task's end."""
    chain, account, port = local_chain, local_chain.funded(), free_port()
    database = postgres.database()
    socket = Path(database.rpartition("host=")[2])
    socket.chmod(0o755)
    common = {
        "chain_url": chain.node.url, "deployment": "/etc/consilium/deployment.json", "artifacts": ["/srv/artifacts"],
        "database_url": database,
    }  # fmt: skip
    keys = {"keystore": "/run/secrets/key.json", "password_file": "/run/secrets/password"}
    settings: dict[str, dict[str, Any]] = {
        "api": {"home": "/var/lib/consilium/api", "host": "0.0.0.0", "port": port, "origin": "https://a.example"},
        "worker": {"home": "/var/lib/consilium/worker", "broker_url": broker.url},
        "aggregator": {"home": "/var/lib/consilium/aggregator", "broker_url": broker.url, **keys},
    }  # fmt: skip
    settings["aggregator"]["first_superlink_port"] = free_port()
    files = prepared(tmp_path / "settings", chain, account, {name: own | common for name, own in settings.items()})
    artifacts = empty(tmp_path / "operator" / "artifacts")
    raw = TASK.replace("who will fall ill", "who is confined").encode()
    spec = parse_task_spec(raw)
    digest = ArtifactStore(artifacts).put_file(raw)
    terms = asdict(params_of(spec, digest, account.address)) | {"aggregator": account.address}
    task = chain.treasury.operator.propose(task_params(**terms))

    found = operators(server, files, tmp_path / "operator", ("ro", socket, str(socket)))
    command = {name: as_command(containers().last(name, "CMD") or "") for name in found}
    with FileServer(artifacts) as mirror, ExitStack() as running_:

        def start(name: str) -> None:
            logs[name] = tmp_path / f"{name}.log"
            processes[name] = running_.enter_context(running(found[name], logs[name], command[name]))

        def healthy(name: str) -> bool:
            assert processes[name].poll() is None, logs[name].read_text()[-4000:]
            check = containers().stages[name].last("HEALTHCHECK") or ""
            return found[name].healthy(check.replace('"8080"', f'"{port}"'))

        logs: dict[str, Path] = {}
        processes: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("api", "worker", "aggregator"):
            start(name)
        place = {"chain_url": chain.node.url, "artifacts": ["artifacts", mirror.url], "data": "/data/rows.csv"}
        place["password_file"] = "/run/secrets/password"
        until(lambda: chain.treasury.tasks.state(task).aggregator_joined, logs["aggregator"])
        (conducted,) = (tmp_path / "operator" / "aggregator" / "aggregator" / "tasks").glob(f"*-{task}")
        superlink = read_settings(conducted / "node.toml", AggregatorSettings).superlink_port
        for name in ("hospital", "voter"):
            own = chain.funded()
            home = home_files(tmp_path / name, own)
            chain.deployment.write(home / "deployment.json")
            empty(home / "artifacts")
            if name == "hospital":
                make_transport_key(home / "transport.key")
                policy = {"operators": "any", "models": "any", "columns": "any", "masked_only": False}
                made = HospitalHome.create(home, place, policy)
                approve(made, chain.treasury, task, digest, superlink, conducted.parents[1] / "tls" / "ca.crt")
            else:
                register(own, 10_000 * TOKEN, 0)
                VoterHome.create(home, place, {"operators": "any", "models": "any", "metrics": "any"})
            given(home, tmp_path / name / "password")
            found[name] = nodes(client, name, home, tmp_path / name)
            command[name] = words(read(name, CONSILIUM_TASK=str(task))["services"]["node"]["command"])
            start(name)
        for name in found:
            until(partial(healthy, name), logs[name])
        until(lambda: chain.treasury.tasks.state(task).phase is Phase.ENDED, logs["hospital"])
        answer = until(lambda: told(port, task), logs["api"])
        assert answer["phase"] == "ended"
        assert "who is confined" in str(answer)

        until(lambda: processes["hospital"].poll() is not None, logs["hospital"])
        assert processes.pop("hospital").wait() == 0  # it has left, with its bond
        for name, process in processes.items():
            file = "voter" if name == "voter" else "operator"
            service = read(file)["services"]["node" if file == "voter" else name]
            stop(process, float(service["stop_grace_period"].removesuffix("s")))
        for name, log in logs.items():
            assert "Traceback" not in log.read_text(), name


def told(port: int, task: int) -> dict[str, Any] | None:
    """What the API says of a task, once it has ended there, too."""
    answer: dict[str, Any] = httpx.get(f"http://127.0.0.1:{port}/v1/tasks/{task}", timeout=30).json()
    return answer if answer.get("phase") == "ended" else None
