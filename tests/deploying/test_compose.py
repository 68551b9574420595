"""The compose files: that they hold, what they let no container do, and that what they are prepared with fits."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from compose_spec import PyCompose
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.keystore import LIGHT_SCRYPT_N, open_keystore, write_keystore
from consilium_chain.rpc.local_node import free_port
from consilium_chain.settings import read_settings
from consilium_server.config import ApiSettings, WorkerSettings
from consilium_server.jobs.broker import make_app
from deploy_driver import CONTAINERFILE, DEPLOY, DIGEST, ROOT, Missing, as_command, compose, containers, words
from eth_account import Account
from pydantic import SecretStr
from test_containerfile import parse

OPERATOR = DEPLOY / "compose" / "operator"
FILES = {name: DEPLOY / "compose" / name / "compose.yaml" for name in ("operator", "hospital", "voter")}
GIVEN = {
    "operator": {
        "CONSILIUM_VERSION": "0.1.0", "CONSILIUM_SETTINGS": "/etc/consilium", "CONSILIUM_LISTEN": "0.0.0.0:443",
    },
    "hospital": {
        "CONSILIUM_VERSION": "0.1.0", "CONSILIUM_HOME": "/srv/home", "CONSILIUM_DATA": "/srv/data",
        "CONSILIUM_PASSWORD_FILE": "/srv/password",
    },
}  # fmt: skip
GIVEN["voter"] = GIVEN["hospital"]
PROXY = DEPLOY / "proxy"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users, which only root may")


def services() -> list[tuple[str, str, dict[str, Any]]]:
    return [(file, name, one) for file in FILES for name, one in read(file)["services"].items()]


def read(file: str, **more: str) -> dict[str, Any]:
    return compose(FILES[file], GIVEN[file] | more)


def is_ours(service: dict[str, Any]) -> bool:
    return "build" in service


def target(service: dict[str, Any]) -> str:
    return str(service["build"]["target"])


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_what_the_specification_says(file: str) -> None:
    found = read(file)
    for service in found["services"].values():
        if "@sha256:" in service["image"]:  # the parser takes a tag or a digest, engines both
            service["image"] = re.sub(r":[^:@]+@", "@", service["image"])
    services = PyCompose.from_json(json.dumps(found)).services
    assert services is not None
    assert services.keys() == found["services"].keys()
    found["services"]["node"] = {"image": "a", "read_onyl": True}
    with pytest.raises(ValueError, match="read_onyl"):
        PyCompose.from_json(json.dumps(found))


@pytest.mark.parametrize("file", FILES)
def test_what_has_no_safe_default_is_asked_for_in_words(file: str) -> None:
    for name in GIVEN[file]:
        given = {key: value for key, value in GIVEN[file].items() if key != name}
        with pytest.raises(Missing, match=rf"^{name}: \w+ \w+"):
            compose(FILES[file], given)


@pytest.mark.parametrize(("file", "name", "service"), services())
def test_a_container_may_do_nothing_that_it_need_not(file: str, name: str, service: dict[str, Any]) -> None:
    assert int(service["user"].split(":")[0]) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.keys() & {"privileged", "devices", "pid", "ipc", "userns_mode", "extra_hosts"}
    assert service.get("network_mode") in (None, "service:proxy")
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert service["init"] is True
    assert service["restart"] == "unless-stopped"
    assert all("noexec" in mount and "nosuid" in mount for mount in service["tmpfs"])
    for mount in service.get("volumes", []):
        assert "docker.sock" not in mount
        source, where, *mode = mount.split(":")
        assert where.startswith("/")
        if source.startswith(("/", ".")) and not where.startswith("/var/lib/consilium"):
            assert mode == ["ro"], mount  # of the host's own, but for a node's home, nothing may be written


@pytest.mark.parametrize(("file", "name", "service"), services())
def test_a_container_says_how_it_is(file: str, name: str, service: dict[str, Any]) -> None:
    if is_ours(service):
        assert containers().stages[target(service)].last("HEALTHCHECK")
        assert "healthcheck" not in service
    else:
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


@pytest.mark.parametrize(("file", "name", "service"), services())
def test_no_secret_is_in_an_environment_or_a_command(file: str, name: str, service: dict[str, Any]) -> None:
    for key, value in service.get("environment", {}).items():
        secret = any(word in key for word in ("PASSWORD", "SECRET", "TOKEN", "KEY", "URL"))
        assert not secret or (key.endswith("_FILE") and value.startswith("/run/secrets/")), key
    assert "env_file" not in service
    assert not [word for word in words(service.get("command")) if "pass" in word.lower()]
    for secret in service.get("secrets", []):
        source = secret if isinstance(secret, str) else secret["source"]
        assert source in read(file)["secrets"]


@pytest.mark.parametrize(("file", "name", "service"), services())
def test_an_image_is_one_of_ours_or_pinned(file: str, name: str, service: dict[str, Any]) -> None:
    if is_ours(service):
        build = service["build"]
        folder = FILES[file].parent
        assert (folder / build["context"]).resolve() == ROOT
        assert ROOT / build["dockerfile"] == CONTAINERFILE
        assert target(service) in containers().stages
        assert service["image"] == f"localhost/consilium-{target(service)}:0.1.0"
        assert service["user"] == containers().last(target(service), "USER")
        named = {rest.partition("=")[0] for stage in containers().stages.values() for rest in stage.all("ARG")}
        assert build.get("args", {}).keys() <= named
    else:
        assert DIGEST.fullmatch(service["image"]), service["image"]


def test_one_image_has_one_digest_everywhere() -> None:
    images = [service["image"] for _, _, service in services() if not is_ours(service)]
    images += containers().arguments.values()
    by_name: dict[str, set[str]] = {}
    for image in images:
        by_name.setdefault(image.partition(":")[0], set()).add(image)
    assert [found for found in by_name.values() if len(found) > 1] == []


@pytest.mark.parametrize("file", FILES)
def test_what_is_mounted_from_the_checkout_is_there(file: str) -> None:
    for service in read(file)["services"].values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (FILES[file].parent / source).exists(), mount


@pytest.mark.parametrize("file", FILES)
def test_named_volumes_networks_and_files_are_declared(file: str) -> None:
    found = read(file)
    for service in found["services"].values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert source.startswith(("/", ".")) or source in found["volumes"], mount
        assert set(service.get("networks", [])) <= set(found.get("networks", {}))
        for config in service.get("configs", []):
            assert config["source"] in found["configs"]
        for name, terms in service.get("depends_on", {}).items():
            assert name in found["services"]
            assert terms["condition"] == "service_healthy"


@pytest.mark.parametrize(("file", "name", "service"), services())
def test_what_a_container_of_ours_runs_can_be_parsed(file: str, name: str, service: dict[str, Any]) -> None:
    if is_ours(service):
        command = words(service.get("command")) or as_command(containers().last(target(service), "CMD") or "")
        parse(command)
        named = [word for word in command if word.startswith("/run/secrets/")]
        assert [Path(word).name for word in named if Path(word).name not in service["secrets"]] == []


def test_a_hospital_runs_the_task_that_it_is_given() -> None:
    assert words(read("hospital")["services"]["node"]["command"]) == ["hospital", "run"]
    node = read("hospital", CONSILIUM_TASK="3")["services"]["node"]
    assert words(node["command"]) == ["hospital", "run", "3"]
    parse(words(node["command"]))


@pytest.mark.parametrize("file", ["hospital", "voter"])
def test_nobody_reaches_a_node(file: str) -> None:
    found = read(file)
    for service in found["services"].values():
        assert not service.keys() & {"ports", "expose"}
        assert "network_mode" not in service
    assert {
        network["driver_opts"]["com.docker.network.bridge.enable_icc"] for network in found["networks"].values()
    } == {"false"}


def test_the_world_reaches_the_operators_proxy_alone() -> None:
    found = read("operator")
    published = {name: service["ports"] for name, service in found["services"].items() if "ports" in service}
    assert published == {"proxy": ["0.0.0.0:443:8443"], "grafana": ["127.0.0.1:3000:3000"]}
    assert found["networks"]["inside"]["internal"] is True
    for name in ("redis", "postgres", "prometheus"):
        assert found["services"][name]["networks"] == ["inside"]


def test_keys_of_the_account_are_the_aggregators_alone() -> None:
    found = read("operator")["services"]
    assert [name for name, one in found.items() if "key.json" in one.get("secrets", [])] == ["aggregator"]
    assert found["aggregator"]["network_mode"] == "service:proxy"  # its SuperLinks listen on loopback


def test_redis_drops_nothing_that_it_has_room_for_and_writes_to_no_disk() -> None:
    redis = read("operator")["services"]["redis"]
    options = dict(itertools.pairwise(words(redis["command"])))
    assert (options["--appendonly"], options["--save"]) == ("no", "")
    assert (options["--maxmemory"], options["--maxmemory-policy"], redis["mem_limit"]) == (
        "128mb",
        "noeviction",
        "256m",
    )
    assert "volumes" not in redis
    assert options["--aclfile"] == "/run/secrets/redis.acl"


# What prepare.sh writes


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that it wrote, twice: the second time it finds all there."""
    folder = tmp_path_factory.mktemp("operator")
    account = Account.create()
    write_keystore(folder / "wallet.json", account, "of the key file", LIGHT_SCRYPT_N)
    (folder / "wallet.password").write_text("of the key file\n")
    address = "0x" + "11" * 20
    Deployment(
        chain_id=31_337, first_block=1, token=address, staking=address, tasks=address, beacon=address,
        beacon_kind="PrevrandaoBeacon", model_shares=address, sponsored_account=address,
    ).write(folder / "book.json")  # fmt: skip
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=consilium.example.org", "-keyout", folder / "tls.key", "-out", folder / "tls.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    values = {
        "CONSILIUM_SETTINGS": folder / "settings", "API_NAME": "consilium.example.org",
        "ARTIFACTS_NAME": "artifacts.example.org", "CHAIN_URL": "https://chain.example.org/v2/key",
        "ADDRESS_BOOK": folder / "book.json", "KEYSTORE": folder / "wallet.json",
        "PASSWORD_FILE": folder / "wallet.password", "TLS_CERTIFICATE": folder / "tls.pem",
        "TLS_KEY": folder / "tls.key",
    }  # fmt: skip
    example = (OPERATOR / "example.env").read_text()
    assert {name for name in values if f"\n{name}=" not in example} == set()
    (folder / "env").write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    before = None
    for _ in range(2):
        subprocess.run([OPERATOR / "prepare.sh", folder / "env"], check=True, capture_output=True)
        written = {path: path.read_bytes() for path in sorted((folder / "settings").rglob("*")) if path.is_file()}
        assert before in (None, written)
        before = written
    return folder / "settings"


@as_root
def test_each_secret_is_its_containers_users_alone(prepared: Path) -> None:
    found = compose(FILES["operator"], GIVEN["operator"] | {"CONSILIUM_SETTINGS": str(prepared)})
    read_by: dict[str, set[int]] = {}
    for service in found["services"].values():
        for secret in service.get("secrets", []):
            source = secret if isinstance(secret, str) else secret["source"]
            read_by.setdefault(source, set()).add(int(service["user"].split(":")[0]))
    assert read_by.keys() == found["secrets"].keys()
    for source, users in read_by.items():
        status = Path(found["secrets"][source]["file"]).stat()
        assert users == {status.st_uid}, source
        assert stat.S_IMODE(status.st_mode) == 0o400, source
    assert stat.S_IMODE((prepared / "secrets").stat().st_mode) == 0o700
    for path in (prepared / "conf.d").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    Deployment.read(Path(found["configs"]["deployment"]["file"]))


@as_root
def test_what_is_prepared_is_settings_that_fit_the_containers(prepared: Path) -> None:
    secrets = prepared / "secrets"
    found = read("operator")
    api = read_settings(secrets / "api.toml", ApiSettings)
    worker = read_settings(secrets / "worker.toml", WorkerSettings)
    aggregator = read_settings(secrets / "aggregator.toml", WorkerSettings)
    addresses = {
        name: one["networks"]["inside"]["ipv4_address"]
        for name, one in found["services"].items()
        if isinstance(one.get("networks"), dict)
    }
    assert [str(one) for one in api.proxies] == [addresses["proxy"] + "/32"]
    assert f"server {addresses['api']}:{api.port};" in (prepared / "conf.d" / "consilium.example.org.conf").read_text()
    assert api.host == "0.0.0.0"
    password = (secrets / "postgres_password").read_text()
    environment = found["services"]["postgres"]["environment"]
    expected = f"postgresql://{environment['POSTGRES_USER']}:{password}@postgres:5432/{environment['POSTGRES_DB']}"
    assert {api.url, worker.url, aggregator.url} == {expected}
    assert len(password) == 64
    assert (worker.key_files, worker.broker) == (None, aggregator.broker)
    assert aggregator.key_files is not None
    mounted = {f"/run/secrets/{one}" for one in found["services"]["aggregator"]["secrets"] if isinstance(one, str)}
    assert {str(path) for path in aggregator.key_files} <= mounted
    assert open_keystore(secrets / "key.json", secrets / "password").address
    for settings in (api, worker, aggregator):
        for path in (settings.home, *settings.artifacts):
            assert isinstance(path, Path)
            assert path.is_relative_to("/var/lib/consilium") or path == Path("/srv/artifacts")
        assert str(settings.deployment) == found["services"]["api"]["configs"][0]["target"]


@as_root
def test_a_password_is_drawn_anew_where_its_files_are_removed(prepared: Path, tmp_path: Path) -> None:
    """As docs/containers.md says; whatever else is there stays as it is."""
    settings = tmp_path / "settings"
    subprocess.run(["cp", "-a", prepared, settings], check=True)
    env = (prepared.parent / "env").read_text().replace(str(prepared), str(settings))
    (tmp_path / "env").write_text(env)
    removed = {"redis_password", "redis.acl", "worker.toml", "aggregator.toml"}
    before = {path.name: path.read_bytes() for path in (settings / "secrets").iterdir()}
    for name in removed:
        (settings / "secrets" / name).unlink()
    subprocess.run([OPERATOR / "prepare.sh", tmp_path / "env"], check=True, capture_output=True)
    after = {path.name: path.read_bytes() for path in (settings / "secrets").iterdir()}
    assert {name for name in before if before[name] != after[name]} == removed
    assert before.keys() == after.keys()
    for name in ("worker.toml", "aggregator.toml"):
        changed = read_settings(settings / "secrets" / name, WorkerSettings)
        assert after["redis_password"].decode() in changed.broker
        assert before["postgres_password"].decode() in changed.url


@contextmanager
def redis_as_in_compose(prepared: Path, folder: Path) -> Iterator[int]:
    """With the very options of the compose file, but for where it is. Its port."""
    port = free_port()
    acl = folder / "redis.acl"
    acl.write_bytes((prepared / "secrets" / "redis.acl").read_bytes())
    options = words(read("operator")["services"]["redis"]["command"])
    options[options.index("--aclfile") + 1] = str(acl)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*options, "--port", str(port), "--bind", "127.0.0.1"], cwd=folder, stdout=log, stderr=log
        )
    try:
        with redis.Redis(port=port, socket_timeout=5) as client:
            for _ in range(100):
                try:
                    assert client.ping()
                    break
                except redis.ConnectionError:
                    assert process.poll() is None, (folder / "log").read_text()
                    subprocess.run(["sleep", "0.1"], check=True)
        yield port
    finally:
        process.terminate()
        process.wait(10)


@as_root
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_redis_takes_jobs_from_who_has_the_password_and_from_nobody_else(prepared: Path, tmp_path: Path) -> None:
    worker = read_settings(prepared / "secrets" / "worker.toml", WorkerSettings)
    with redis_as_in_compose(prepared, tmp_path) as port:
        health = read("operator")["services"]["redis"]["healthcheck"]["test"][1]
        command = health.replace("redis-cli ", f"redis-cli -p {port} ")
        assert subprocess.run(["sh", "-c", command]).returncode == 0
        with redis.Redis(port=port) as stranger, pytest.raises(redis.exceptions.NoPermissionError):
            stranger.get("a")
        broker = worker.broker.replace("@redis:6379", f"@127.0.0.1:{port}")
        app = make_app(worker.model_copy(update={"broker_url": SecretStr(broker)}), "jobs")
        app.send_task("index", (), expires=60)
        with app.connection() as connection, connection.SimpleQueue("jobs") as queue:
            message = queue.get(timeout=10)
            assert message.headers["task"] == "index"
            message.ack()
        with redis.Redis.from_url(broker) as known, pytest.raises(redis.exceptions.NoPermissionError):
            known.config_get("*")


@as_root
@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed: apt-get install nginx-light")
def test_nginx_takes_the_configuration_that_is_prepared(prepared: Path, tmp_path: Path) -> None:
    moved = {
        "/etc/nginx/conf.d": prepared / "conf.d", "/run/secrets/certificate.pem": prepared / "secrets/certificate.pem",
        "/run/secrets/certificate.key": prepared / "secrets/certificate.key", "/run/nginx.pid": tmp_path / "pid",
        "/var/log/nginx": tmp_path, "/var/lib/nginx": tmp_path,
    }  # fmt: skip
    folder = tmp_path / "conf.d"
    folder.mkdir()
    for path in [*(prepared / "conf.d").iterdir(), PROXY / "nginx.conf"]:
        text = path.read_text()
        for there, here in (moved | {"/etc/nginx/conf.d": folder}).items():
            text = text.replace(there, str(here))
        (folder / path.name if path.name != "nginx.conf" else tmp_path / "nginx.conf").write_text(text)
    found = subprocess.run(["nginx", "-t", "-c", tmp_path / "nginx.conf"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
