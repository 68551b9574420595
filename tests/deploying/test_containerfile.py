"""The container file: what each image is made of, what it runs, and that its health check tells health from none."""

from __future__ import annotations

import fnmatch
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urljoin

import click
import httpx
import pytest
import tomli_w
import typer
from consilium_chain.rpc.local_node import free_port
from consilium_cli.main import app
from consilium_core.locks import alone
from consilium_server.api.dashboard import PAGES
from consilium_server.database.engine import open_database
from consilium_server.jobs.store import Ended, end, take
from deploy_driver import CONTAINERFILE, DIGEST, ROLES, ROOT, as_command, containers, copied_from

HEALTHY = CONTAINERFILE.parent / "healthy.py"
OURS = tuple(role for role in ROLES if role != "dashboard")
ALIKE = ("api", "worker", "aggregator")


def parse(command: list[str]) -> None:
    """As the program itself would, without running it. Raises click.UsageError."""
    found: click.Command = typer.main.get_command(app)
    context = found.make_context("consilium", [], resilient_parsing=True)
    rest = list(command)
    while isinstance(found, click.Group):
        name, found_, rest = found.resolve_command(context, rest)
        assert found_ is not None
        found = found_
        with context.scope(cleanup=False):
            context = (
                click.Context(found, parent=context, info_name=name)
                if isinstance(found, click.Group)
                else found.make_context(name, rest, parent=context)
            )


def test_every_base_is_pinned_by_digest() -> None:
    file = containers()
    for image in file.arguments.values():
        assert DIGEST.fullmatch(image), image
    for stage in file.stages.values():
        assert stage.base in file.stages or stage.base in file.arguments.values(), stage.base


def test_each_role_has_a_target() -> None:
    assert set(ROLES) <= set(containers().stages)


@pytest.mark.parametrize("role", ROLES)
def test_an_image_runs_as_a_fixed_user_and_says_how_it_is(role: str) -> None:
    file = containers()
    uid, gid = (file.last(role, "USER") or "").split(":")
    assert int(uid) > 100
    assert int(gid) > 100
    assert (file.last(role, "STOPSIGNAL") or "") == ("SIGQUIT" if role == "dashboard" else "SIGTERM")
    assert "CMD" in (file.stages[role].last("HEALTHCHECK") or "")
    # What comes in after the base is the base's own, or copied from stages that are thrown away.
    assert not [run for run in file.all(role, "RUN") if re.search(r"\b(pip|npm|apt-get|apk|curl|wget)\b", run)]


@pytest.mark.parametrize("role", OURS)
def test_an_image_of_ours_declares_where_it_writes(role: str) -> None:
    volumes = {path for written in containers().all(role, "VOLUME") for path in as_command(written)}
    assert "/var/lib/consilium" in volumes
    assert ("/srv/artifacts" in volumes) == (role in ALIKE)


def test_nothing_of_the_clients_packages_is_in_a_servers_image() -> None:
    file = containers()
    for role in ALIKE:
        assert "client-packages" not in file.needs(role), role
        assert "server-packages" in file.needs(role), role
    for role in ("hospital", "voter"):
        assert "client-packages" in file.needs(role)
        assert "server-packages" not in file.needs(role)


def test_the_interpreter_is_the_one_that_the_dashboard_is_copied_for() -> None:
    file = containers()
    minor = re.search(r"python:(3\.\d+)", file.image("api"))
    assert minor is not None
    copied = [rest for rest in file.stages["api"].all("COPY") if "dashboard" in rest]
    assert f"/lib/python{minor[1]}/site-packages/consilium_server/dashboard/" in copied[0]
    assert minor[1] == f"{sys.version_info.major}.{sys.version_info.minor}"  # what the constraints were tried with


@pytest.mark.parametrize("role", OURS)
def test_what_an_image_runs_can_be_parsed(role: str) -> None:
    file = containers()
    assert as_command(file.last(role, "ENTRYPOINT") or "") == ["consilium"]
    parse(as_command(file.last(role, "CMD") or ""))


def test_a_command_with_a_wrong_flag_could_not_be_parsed() -> None:
    with pytest.raises(click.UsageError):
        parse(["server", "api", "--configuration", "api.toml"])


# What goes into a build


def is_sent(path: str, patterns: list[str]) -> bool:
    """By the rules of a .dockerignore: the last pattern that fits the path or a folder of it counts."""
    parts = path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    sent = True
    for pattern in patterns:
        bare = pattern.removeprefix("!")
        fits = any(fnmatch.fnmatch(part, bare.removeprefix("**/")) for part in parts) if bare.startswith("**/") else (
            any(fnmatch.fnmatch(one, bare) for one in above if one.count("/") == bare.count("/"))
        )  # fmt: skip
        if fits:
            sent = pattern.startswith("!")
    return sent


def patterns() -> list[str]:
    lines = CONTAINERFILE.with_name("Containerfile.dockerignore").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_all_that_is_copied_is_there_and_is_sent() -> None:
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    tracked = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for stage in containers().stages.values():
        for rest in stage.all("COPY"):
            if copied_from(rest):
                assert copied_from(rest) in containers().stages
                continue
            for source in rest.split()[:-1]:
                files = [path for path in tracked if path == source or path.startswith(source.rstrip("/") + "/")]
                assert files, f"{source} is not in the checkout"
                unsent = [path for path in files if not is_sent(path, patterns())]
                assert unsent == []


@pytest.mark.parametrize(
    "path",
    [
        ".git/config", ".env", ".venv/bin/python", ".consilium/up/nodes/aggregator/key.json", "tests/conftest.py",
        "chain/contracts/node_modules/solc/x.js", "dashboard/node_modules/vite/x.js", "dashboard/src/generated/abi.ts",
        "chain/consilium_chain/contracts/Tasks.json", "server/consilium_server/dashboard/index.html",
        "zk/consilium_zk/__pycache__/kzg.pyc", "deploy/compose/operator/.env", "deploy/compose/hospital/compose.yaml",
    ],
)  # fmt: skip
def test_nothing_private_or_generated_is_sent(path: str) -> None:
    assert not is_sent(path, patterns())


def test_hadolint_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    if not linter.exists():
        pytest.skip("hadolint is not installed: make dev")
    found = subprocess.run([linter, "--no-color", CONTAINERFILE], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "")


# Health


def health(*arguments: str) -> SimpleNamespace:
    found = subprocess.run([sys.executable, HEALTHY, *arguments], capture_output=True, text=True, env=os.environ)
    return SimpleNamespace(healthy=found.returncode == 0, said=found.stderr.strip())


def test_an_api_is_healthy_that_answers() -> None:
    alive = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" and alive.is_set() else 500)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        alive.set()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = str(server.server_address[1])
        assert health("api", port).healthy
        alive.clear()
        assert not health("api", port).healthy
        server.shutdown()
    found = health("api", str(free_port()))
    assert not found.healthy
    assert "refused" in found.said


def test_a_worker_is_healthy_that_indexed_lately(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'index.sqlite'}"
    config = tmp_path / "worker.toml"
    paths = {"home": str(tmp_path), "deployment": "none", "artifacts": "none", "chain_url": "http://127.0.0.1:1"}
    config.write_text(tomli_w.dumps(paths | {"database_url": url}))
    database = open_database(url)
    now = time.time()
    row = take(database, "index", "", "host:1", now - 10, 30.0)
    assert row is not None
    end(database, row, row.owner, now - 9, Ended())
    assert health("jobs", str(config)).healthy
    row = take(database, "index", "", "host:1", now, 30.0)
    assert row is not None
    end(database, row, row.owner, now, Ended(failure=("ChainUnreachable", "no chain node"), wait=1.0))
    with database.begin() as connection:
        connection.exec_driver_sql("UPDATE jobs SET succeeded_at = succeeded_at - 600")
    database.dispose()
    found = health("jobs", str(config))
    assert not found.healthy
    assert "ChainUnreachable: no chain node" in found.said


@pytest.mark.parametrize("lock", ["lock", "task-3/lock"])
def test_a_node_is_healthy_while_it_holds_its_home(tmp_path: Path, lock: str) -> None:
    assert not health("node", str(tmp_path)).healthy
    with alone(tmp_path / lock, AssertionError()):
        assert health("node", str(tmp_path)).healthy
    assert health("node", str(tmp_path)).said == f"no node runs in {tmp_path}"


# The dashboard's own server


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The dashboard's nginx as it is shipped, on a free port, with one file."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed: apt-get install nginx-light")
    folder, port = tmp_path_factory.mktemp("dashboard"), free_port()
    site = CONTAINERFILE.with_name("dashboard.conf").read_text()
    for shipped, own in (("listen 8080;", f"listen 127.0.0.1:{port};"), ("/usr/share/nginx/html;", f"{folder};")):
        assert shipped in site
        site = site.replace(shipped, own)
    (folder / "index.html").write_text("the dashboard")
    (folder / "site.conf").write_text(site)
    temporary = " ".join(
        f"{one}_temp_path {folder}/{one};" for one in ("client_body", "proxy", "fastcgi", "scgi", "uwsgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""  # its workers read what pytest lets nobody else read
    (folder / "nginx.conf").write_text(
        f"daemon off; {user} pid {folder}/pid; error_log stderr; events {{}}"
        f" http {{ access_log off; {temporary} include {folder}/site.conf; }}"
    )
    server = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-p", folder, "-e", "stderr"])
    retrying = httpx.HTTPTransport(retries=8)  # waits 0.5 s, and twice as long each time
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", transport=retrying) as client:
        yield client
    server.terminate()
    assert server.wait(20) == 0


def test_the_dashboards_server_has_its_files_and_nothing_else(dashboard: httpx.Client) -> None:
    assert dashboard.get("/").text == "the dashboard"
    assert dashboard.get("/tasksheet").status_code == 404


@pytest.mark.parametrize("rest", ["", "/", "/3", "/3/rounds/1", "/3/rounds/1?a=/b", "?phase=ended"])
@pytest.mark.parametrize("page", PAGES)
def test_the_dashboards_server_redirects_to_its_pages(dashboard: httpx.Client, page: str, rest: str) -> None:
    """As the API does it: the same pages, wherever a proxy puts them."""
    told = dashboard.get(f"/{page}{rest}")
    assert told.status_code == 302
    assert urljoin(f"https://example.org/prefix/{page}{rest}", told.headers["Location"]) == (
        f"https://example.org/prefix/#/{page}{rest}"
    )
