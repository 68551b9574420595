"""The parts of Flower's private API that this project uses: if Flower changes them, these tests fail first."""

from __future__ import annotations

import ast
import importlib
import inspect
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import consilium_client.relay.flower_internals as client_internals
import consilium_server.flower.bounded_superlink as superlink_internals
import consilium_server.flower.internals as server_internals
import httpx
import psutil
import pytest
from consilium_chain.errors import LocalNodeError
from consilium_chain.rpc.local_node import free_port
from consilium_core.kinds import of_kind
from consilium_server.certificates import ensure_certificates
from consilium_server.errors import SuperLinkFailed
from consilium_server.flower.internals import SuperLink
from cryptography import x509

MODULES = [Path(of_kind(str, one.__file__)) for one in (client_internals, server_internals, superlink_internals)]
PUBLIC = {"flwr.app", "flwr.clientapp", "flwr.serverapp"}


def flower_names(path: Path) -> list[tuple[str, str | None]]:
    """Every module and name of Flower that a file imports, at any place in it."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flwr"):
            found += [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names if alias.name.startswith("flwr")]
    return found


@pytest.mark.parametrize("path", MODULES, ids=["client", "server", "superlink"])
def test_flower_still_has_every_name_that_is_imported(path: Path) -> None:
    names = flower_names(path)
    assert len(names) > 5
    for module, name in names:
        loaded = importlib.import_module(module)
        assert name is None or hasattr(loaded, name), f"{module}.{name} moved: see {path}"


def test_flower_still_has_what_the_executor_replaces() -> None:
    runtime = importlib.import_module("flwr.supernode.runtime.run_clientapp")
    supernode = importlib.import_module("flwr.supernode.start_client_internal")
    for name in ("install_from_fab", "get_load_client_app_fn", "run_clientapp"):
        assert callable(getattr(runtime, name))
    assert supernode.time.sleep
    pulls = inspect.signature(supernode._pull_and_store_message).parameters
    assert {"pull_object", "confirm_message_received"} <= pulls.keys()
    assert importlib.import_module("flwr.supercore.retry.http_retry").MAX_RETRY_DELAY > client_internals.LONGEST_WAIT


def test_private_flower_is_used_in_three_modules_only() -> None:
    root = Path(client_internals.__file__).parents[3]
    files = [
        path
        for room in ("zk", "chain", "client", "server", "cli")
        for path in (root / room).glob("consilium_*/**/*.py")
    ]
    assert len(files) > 30
    users = {path for path in files if {module for module, _ in flower_names(path)} - PUBLIC}
    assert users == set(MODULES)


@pytest.fixture(scope="module")
def superlink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SuperLink]:
    with SuperLink(tmp_path_factory.mktemp("superlink"), free_port()) as running:
        running.wait_until_up()
        yield running


def test_superlink_answers_health_over_tls_alone(superlink: SuperLink) -> None:
    trust = ssl.create_default_context(cafile=str(superlink.certificates.authority))
    assert httpx.get(f"https://{superlink.address}/health", verify=trust).status_code == 200
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"https://{superlink.address}/health")  # of no authority that this machine knows
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://{superlink.address}/health")


def test_superlink_listens_on_loopback_alone(superlink: SuperLink) -> None:
    """The Control API has no authentication: any client that reaches it can start runs and remove nodes."""
    family = [psutil.Process(superlink._process.pid)]
    family += family[0].children(recursive=True)
    listening = {c.laddr for one in family for c in one.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    port = int(superlink.address.split(":")[1])
    assert port in {address.port for address in listening}
    assert {address.ip for address in listening} == {"127.0.0.1"}


def test_superlink_keeps_its_secret_out_of_command_line_and_files_of_others(superlink: SuperLink) -> None:
    secret = superlink._secret.read_text()
    assert superlink._secret.stat().st_mode & 0o777 == 0o600
    assert superlink.certificates.key.stat().st_mode & 0o777 == 0o600
    process = psutil.Process(superlink._process.pid)
    assert not any(secret in part for part in process.cmdline())
    assert secret not in process.environ().values()


def test_superlink_refuses_a_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(LocalNodeError, match="for the SuperLink is in use"):
            SuperLink(tmp_path, taken.getsockname()[1])


def test_superlink_that_ends_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ends_at_once.py").write_text("raise SystemExit(7)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(server_internals, "SUPERLINK", "ends_at_once")
    with (
        SuperLink(tmp_path, free_port()) as ended,
        pytest.raises(SuperLinkFailed, match=r"exit code 7: read superlink\.log"),
    ):
        ended.wait_until_up()


def test_certificates_verify_for_loopback_and_are_kept(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path / "tls")
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    server = x509.load_pem_x509_certificate(made.certificate.read_bytes())
    server.verify_directly_issued_by(authority)
    constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (True, 0)
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert made.key.stat().st_mode & 0o777 == 0o600
    again = ensure_certificates(tmp_path / "tls")
    assert again == made
    assert x509.load_pem_x509_certificate(again.certificate.read_bytes()) == server
    made.certificate.unlink()
    ensure_certificates(tmp_path / "tls")
    assert x509.load_pem_x509_certificate(made.certificate.read_bytes()).serial_number != server.serial_number


def test_relay_imports_no_torch() -> None:
    """A relay starts for every message. Modules that it does not load cannot leak data, and cost no time."""
    code = (
        "import sys, consilium_client.relay.app; print([m for m in ('torch', 'sklearn', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip().splitlines()[-1] == "[]"
