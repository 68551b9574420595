"""Sign-In with Ethereum (EIP-4361): the examples of the EIP, and messages that must be refused."""

from __future__ import annotations

import json
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_wallet import Wallet, rfc3339
from consilium_server.api.app import build, make_service
from consilium_server.api.reading import open_engine
from consilium_server.api.sessions import SECRET_BYTES, SESSION_SECONDS, ensure_secret
from consilium_server.api.siwe import Site, parse_message, require_valid
from consilium_server.errors import RequestRefused, ServerError
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from indexed_network import CHAIN_ID, ORIGIN, IndexedNetwork, app_of, settings_of
from raised_faults import raises_fault

VECTORS = Path(__file__).parents[1] / "vectors"

# The three examples of EIP-4361.
EXAMPLE = """{} wants you to sign in with your Ethereum account:
0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2

I accept the ExampleOrg Terms of Service: https://example.com/tos

URI: https://example.com/login
Version: 1
Chain ID: 1
Nonce: 32891756
Issued At: 2021-09-30T16:25:24Z
Resources:
- ipfs://bafybeiemxf5abjwjbikoz4mc3a3dla6ual3jsgpdr4cjr3oz3evfyavhwq/
- https://example.com/my-web2-claim.json"""
ISSUED = 1_633_019_124


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(app_of(IndexedNetwork(tmp_path), limits={"sign_ins_per_minute": 1000})) as client:
        yield client


# Reading


@pytest.mark.parametrize("vector", json.loads((VECTORS / "sign_in.json").read_text()))
def test_what_the_dashboard_has_signed_is_read(vector: dict[str, Any]) -> None:
    given, message = vector["given"], parse_message(vector["message"])
    assert (message.domain, message.uri, message.chain_id) == (given["domain"], given["uri"], given["chainId"])
    assert (message.address, message.nonce, message.statement) == (
        given["account"], given["nonce"], given["statement"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "scheme", "domain"),
    [
        ("example.com", None, "example.com"),
        ("example.com:3388", None, "example.com:3388"),
        ("https://example.com", "https", "example.com"),
    ],
)
def test_the_eips_examples(first: str, scheme: str | None, domain: str) -> None:
    message = parse_message(EXAMPLE.format(first))
    assert (message.scheme, message.domain, message.chain_id, message.nonce) == (scheme, domain, 1, "32891756")
    assert message.address == "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"
    assert message.statement == "I accept the ExampleOrg Terms of Service: https://example.com/tos"
    assert (message.uri, message.issued_at, message.expiration_time) == ("https://example.com/login", ISSUED, None)
    assert message.resources == (
        "ipfs://bafybeiemxf5abjwjbikoz4mc3a3dla6ual3jsgpdr4cjr3oz3evfyavhwq/",
        "https://example.com/my-web2-claim.json",
    )


@pytest.mark.parametrize("uri", ["https://[::1]:8080/x?y#z", "urn:isbn:1", "https://u:p@example.com", "did:key:z6/%20"])
def test_uris_of_all_kinds(uri: str) -> None:
    assert parse_message(EXAMPLE.format("example.com").replace("https://example.com/login", uri)).uri == uri


def test_all_that_may_be_left_out_or_added() -> None:
    text = EXAMPLE.format("example.com")
    bare = text.split("\nResources")[0].replace(
        "I accept the ExampleOrg Terms of Service: https://example.com/tos\n", ""
    )
    message = parse_message(bare)
    assert (message.statement, message.resources, message.request_id) == (None, (), None)
    full = parse_message(
        bare + "\nExpiration Time: 2021-09-30T18:25:24.5+02:00\nNot Before: 2021-09-30T16:25:24-00:30"
        "\nRequest ID: a%20b@c\nResources:"
    )
    assert (full.expiration_time, full.not_before) == (ISSUED + 0.5, ISSUED + 1800)
    assert (full.request_id, full.resources) == ("a%20b@c", ())


def changed(old: str, new: str) -> str:
    text = EXAMPLE.format("example.com")
    assert old in text
    return text.replace(old, new, 1)


MALFORMED = {
    "nothing": "",
    "another sentence": changed("wants you to sign in", "wants you to log in"),
    "no domain": changed("example.com wants", " wants"),
    "a domain with a path": changed("example.com wants", "example.com/x wants"),
    "an address in small letters": changed("0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", "0x" + 38 * "0" + "ab"),
    "a wrong capital": changed("0xC02aaA39", "0xC02aAA39"),
    "a short address": changed("083C756Cc2", "083C756Cc"),
    "no empty line after the address": changed("Cc2\n\nI", "Cc2\nI"),
    "a statement of two lines": changed("Terms of", "Terms\nof"),
    "a statement with another sign": changed("Terms", "T\u00e9rms"),
    "no URI": changed("URI: https://example.com/login\n", ""),
    "a URI without a scheme": changed("URI: https://example.com/login", "URI: example.com/login"),
    "a URI with a space": changed("/login", "/log in"),
    "a URI whose host is no address": changed("URI: https://example.com/", "URI: https://[1]/"),
    "a URI with half a bracket": changed("URI: https://example.com/", "URI: https://[example.com/"),
    "a URI with brackets in its path": changed("/login", "/[login]"),
    "version 2": changed("Version: 1", "Version: 2"),
    "a negative chain": changed("Chain ID: 1", "Chain ID: -1"),
    "a chain in other digits": changed("Chain ID: 1", "Chain ID: \u0661"),
    "a short nonce": changed("32891756", "3289175"),
    "a nonce with a sign": changed("32891756", "3289175-"),
    "no time": changed("Issued At: 2021-09-30T16:25:24Z", "Issued At: yesterday"),
    "a time without a zone": changed("16:25:24Z", "16:25:24"),
    "a thirteenth month": changed("2021-09-30", "2021-13-30"),
    "fields in another order": changed("Version: 1\nChain ID: 1", "Chain ID: 1\nVersion: 1"),
    "a field twice": changed("Version: 1", "Version: 1\nVersion: 1"),
    "small letters of a field": changed("Nonce:", "nonce:"),
    "lines that end as Windows's do": EXAMPLE.format("example.com").replace("\n", "\r\n"),
    "a line at the end": EXAMPLE.format("example.com") + "\n",
    "a resource that is none": EXAMPLE.format("example.com") + "\n- no uri",
    "something before": " " + EXAMPLE.format("example.com"),
    "too long": EXAMPLE.format("example.com") + "\n- https://example.com/" + "x" * 5000,
}  # fmt: skip


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_message(text: str) -> None:
    with raises_fault(RequestRefused, "SignInMalformed"):
        parse_message(text)


@given(st.text(alphabet="[]:/?#@%0a.1", max_size=12))
def test_whatever_stands_as_uri_is_read_or_refused(uri: str) -> None:
    text = changed("https://example.com/login", f"https:{uri}")
    try:
        message = parse_message(text)
    except RequestRefused as error:
        if error.name == "SignInMalformed":
            return
        raise
    with raises_fault(RequestRefused, "SignInRefused"):
        require_valid(message, bytes(65), Site("https://example.com", 1), ISSUED)


@given(st.data())
def test_no_single_change_goes_unnoticed(data: st.DataObject) -> None:
    """A message with one changed character is invalid, or does not fit the signature."""
    wallet = Wallet()
    text = changed("0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", wallet.address)
    signature = bytes.fromhex(wallet.sign(text)[2:])
    site = Site("https://example.com", 1)
    require_valid(parse_message(text), signature, site, ISSUED)
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(max_codepoint=0x2FF).filter(lambda c: c != text[place]))
    try:
        message = parse_message(text[:place] + other + text[place + 1 :])
    except RequestRefused as error:
        if error.name == "SignInMalformed":
            return
        raise
    with raises_fault(RequestRefused, "SignInRefused"):
        require_valid(message, signature, site, ISSUED)


# Signing in


def test_who_signs_in_has_a_session(client: TestClient) -> None:
    wallet = Wallet()
    answer = wallet.sign_in(client)
    told = answer.json()
    assert (answer.status_code, told["account"], told["role"]) == (200, wallet.address, "signed-in")
    assert answer.headers["cache-control"] == "no-store"
    assert "set-cookie" not in answer.headers
    assert abs(told["expires_at"] - time.time() - SESSION_SECONDS) < 10
    session = client.get("/v1/session", headers={"Authorization": f"Bearer {told['token']}"}).json()
    assert session == {key: told[key] for key in ("account", "role", "expires_at")}


NOW = time.time()
REFUSED = {
    "another site": ({"domain": "evil.example"}, "domain"),
    "the site's name on another port": ({"domain": "consilium.example"}, "domain"),
    "another scheme": ({"domain": "http://consilium.example:8443"}, "domain"),
    "a URI elsewhere": ({"uri": "https://evil.example/"}, "uri"),
    "a URI of another scheme": ({"uri": "http://consilium.example:8443/"}, "uri"),
    "a URI whose user is the site": ({"uri": "https://consilium.example:8443@evil.example/"}, "uri"),
    "another chain": ({"chain_id": CHAIN_ID + 1}, "chain"),
    "expired": ({"more": f"\nExpiration Time: {rfc3339(NOW - 1)}"}, "expired"),
    "not yet valid": ({"more": f"\nNot Before: {rfc3339(NOW + 3600)}"}, "not-before"),
    "issued tomorrow": ({"issued_at": rfc3339(NOW + 86_400)}, "issued-at"),
    "a nonce of one's own": ({"nonce": "12345678"}, "nonce"),
    "a nonce as long as the server's": ({"nonce": "00" * 40}, "nonce"),
    "another account's name": ({"address": Wallet().address}, "signature"),
}


@pytest.mark.parametrize(("changes", "what"), REFUSED.values(), ids=REFUSED.keys())
def test_who_is_refused(client: TestClient, changes: dict[str, object], what: str) -> None:
    answer = Wallet().sign_in(client, **changes)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:consilium:problem:sign-in-refused")
    assert answer.json()["faults"][0]["where"] == what


def test_a_message_counts_once(client: TestClient) -> None:
    wallet = Wallet()
    text = wallet.message(client)
    sent = {"message": text, "signature": wallet.sign(text)}
    first, second = (client.post("/v1/session", json=sent) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 403)
    assert second.json()["faults"][0]["where"] == "nonce"


def test_nobody_spends_anothers_nonce_with_a_message_that_does_not_hold(client: TestClient) -> None:
    wallet = Wallet()
    text = wallet.message(client)
    forged = client.post("/v1/session", json={"message": text, "signature": Wallet().sign(text)})
    assert forged.json()["faults"][0]["where"] == "signature"
    assert client.post("/v1/session", json={"message": text, "signature": wallet.sign(text)}).status_code == 200


def test_an_altered_message_and_a_signature_that_is_none(client: TestClient) -> None:
    wallet = Wallet()
    text = wallet.message(client)
    altered = text.replace("Sign in to Consilium.", "Give me everything.")
    for message, signature in ((altered, wallet.sign(text)), (text, "0x" + "ff" * 65), (text, "0x" + "00" * 65)):
        answer = client.post("/v1/session", json={"message": message, "signature": signature})
        assert answer.json()["faults"][0]["where"] == "signature"


def test_a_session_ends_when_its_message_does(client: TestClient) -> None:
    told = Wallet().sign_in(client, more=f"\nExpiration Time: {rfc3339(time.time() + 2)}").json()
    headers = {"Authorization": f"Bearer {told['token']}"}
    assert client.get("/v1/session", headers=headers).status_code == 200
    time.sleep(max(0.0, told["expires_at"] - time.time()) + 0.01)
    assert client.get("/v1/session", headers=headers).status_code == 401


def test_a_nonce_counts_once_across_processes(tmp_path: Path) -> None:
    """Two servers share a database and a secret, and get one message many times at once."""
    network = IndexedNetwork(tmp_path)
    settings = settings_of(network, limits={"sign_ins_per_minute": 1000})
    services = [make_service(settings, open_engine(network.url)) for _ in range(2)]
    clients = [TestClient(build(service)) for service in services]
    for _ in range(5):
        wallet, statuses = Wallet(), Counter[int]()
        text = wallet.message(clients[0])
        sent = {"message": text, "signature": wallet.sign(text)}

        def send(client: TestClient, sent: dict[str, str] = sent, statuses: Counter[int] = statuses) -> None:
            statuses[client.post("/v1/session", json=sent).status_code] += 1

        threads = [threading.Thread(target=send, args=(client,)) for client in clients for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == {200: 1, 403: 5}
    token = Wallet().sign_in(clients[0]).json()["token"]
    assert clients[1].get("/v1/session", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_a_session_of_another_site_or_chain_is_none(tmp_path: Path) -> None:
    """Also if the secret is the same."""
    network = IndexedNetwork(tmp_path)
    token = Wallet().sign_in(TestClient(app_of(network))).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    assert TestClient(app_of(network)).get("/v1/session", headers=headers).status_code == 200
    assert (
        TestClient(app_of(network, origin="https://other.example")).get("/v1/session", headers=headers).status_code
        == 401
    )
    replace(network.deployment, chain_id=1).write(tmp_path / "deployment.json")
    assert TestClient(app_of(network)).get("/v1/session", headers=headers).status_code == 401
    assert ORIGIN != "https://other.example"


def test_without_its_secret_a_server_makes_another_and_everybody_signs_in_again(tmp_path: Path) -> None:
    network, wallet = IndexedNetwork(tmp_path), Wallet()

    def status(client: TestClient, token: str) -> int:
        return client.get("/v1/session", headers={"Authorization": f"Bearer {token}"}).status_code

    running = TestClient(app_of(network))
    token = wallet.sign_in(running).json()["token"]
    (tmp_path / "home" / "api.secret").unlink()
    assert status(running, token) == 200  # which it has until it is started again
    again = TestClient(app_of(network))
    assert status(again, token) == 401
    assert status(again, wallet.sign_in(again).json()["token"]) == 200


def test_the_secret_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    path = tmp_path / "home" / "api.secret"
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(ensure_secret(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(found[0]) == SECRET_BYTES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["api.secret"]
    path.chmod(0o640)
    with raises_fault(ServerError, "SecretExposed", match="readable by others"):
        ensure_secret(path)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with raises_fault(ServerError, "SecretExposed", match="32 bytes"):
        ensure_secret(path)


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"message":' * 20_000, b'{"message":"\\ud800","signature":"0x"}'])
def test_a_body_that_is_nested_or_no_text_is_a_problem(client: TestClient, body: bytes) -> None:
    """Deep nesting once overflowed the parser's stack, and ended the process."""
    answer = client.post("/v1/session", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
