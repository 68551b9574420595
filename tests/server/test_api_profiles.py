"""Signed profiles and the search, with hostile senders and hostile names."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from consilium_chain.errors import ProfileInvalid
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.structs import Role
from consilium_chain.profiles import MOST_BYTES, Profile, SignedProfile, parse_profile, sign_profile
from consilium_cli import main
from consilium_cli.nodes import commands
from consilium_core.private_files import write_private_file
from consilium_core.visible_text import parse_own_name
from eth_account import Account
from fastapi.testclient import TestClient
from httpx2 import Response
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_network import CHAIN_ID, TASK_FILE, IndexedNetwork, app_of, hash_of, served
from typer.testing import CliRunner

JSON = {"Content-Type": "application/json"}
NODE, STRANGER = Account.create(), Account.create()
NOW = int(time.time())
FULL = Profile(
    name="Klinikum Größenwahn", institution="Universität", country="DE", site="https://x.example.org/a",
    contact="office@example.org",
)  # fmt: skip
MISLEADING = {
    "two scripts": ("Pаypal", "several scripts"),
    "an address": ("0xC02a", "looks like an address"),
    "an address in Cyrillic": ("клиника 0хаб", "looks like an address"),
    "another form": ("𝐀dmin", "letter in another form"),
    "full width": ("Ａｄｍｉｎ", "letter in another form"),
    "turned round": ("a\u202eb", "is invisible"),
    "no width": ("a\u200bb", "is invisible"),
    "private use": ("\ue000", "is invisible"),
    "a tower": ("a" + "\u0301\u0302\u0303\u0304", "more than the 2"),
    "long": ("x" * 61, "shorten it to 60"),
    "two blanks": ("a  b", "two in a row"),
}
WRONG = {
    "country": ("QQ", "de", "DEU"),
    "site": ("http://x.org", "https://a@x.org", "https://x.org:8443", "https://127.0.0.1/", "https://x"),
    "contact": ("a@b", "a b@x.org", "a@x.org\n", "a@x.org,b@x.org"),
}  # fmt: skip


@pytest.fixture
def network(tmp_path: Path) -> Iterator[IndexedNetwork]:
    network = with_node(IndexedNetwork(tmp_path))
    yield network
    network.engine.dispose()


def with_node(network: IndexedNetwork) -> IndexedNetwork:
    with network.mined():
        network.propose(1, TASK_FILE)
    with network.mined():
        network.register(NODE.address, Role.HOSPITAL)
    return network


@pytest.fixture
def client(network: IndexedNetwork) -> Iterator[TestClient]:
    with TestClient(app_of(network)) as client:
        yield client


def signed(network: IndexedNetwork, profile: Profile = FULL, at: int = NOW, **changes: Any) -> dict[str, Any]:
    given = {"account": NODE, "chain_id": CHAIN_ID, "staking": network.deployment.staking} | changes
    return sign_profile(profile, updated_at=at, **given).model_dump()


def put(client: TestClient, body: dict[str, Any], account: str = NODE.address) -> Response:
    return client.put(f"/v1/profiles/{account}", json=body)


def shown(client: TestClient) -> list[dict[str, Any]]:
    answer = client.get("/v1/profiles", params={"account": [STRANGER.address, NODE.address.lower()]})
    return list(answer.json()["items"])


# Names


@pytest.mark.parametrize(("text", "why"), MISLEADING.values(), ids=MISLEADING)
def test_parse_profile_refuses_a_name_that_misleads(text: str, why: str) -> None:
    quoted = "".join(f"\\U{ord(character):08x}" for character in text)
    with pytest.raises(ProfileInvalid, match=f"the profile is invalid: name: .*{why}"):
        parse_profile(f'name = "{quoted}"'.encode())


@pytest.mark.parametrize(("field", "text"), [(field, text) for field, texts in WRONG.items() for text in texts])
def test_parse_profile_names_the_field(field: str, text: str) -> None:
    with pytest.raises(ProfileInvalid, match=f"the profile is invalid: {field}: it is not an?"):
        parse_profile(f'name = "a"\n{field} = """{text}"""'.encode())


@pytest.mark.parametrize(
    "text", ["Klinik 2", "東京大学病院 ひらがな", "Госпиталь № 1", "서울대", "सरकारी अस्पताल", "L'Hôpital ʻOkina"]
)
def test_parse_own_name_takes_names_of_any_language(text: str) -> None:
    assert parse_own_name(text, 60) == text


@settings(max_examples=30)
@given(st.text(min_size=1, max_size=60), st.text(max_size=100))
def test_profiles_fit_into_the_bytes_of_a_request(name: str, institution: str) -> None:
    try:
        profile = Profile(
            name=name, institution=institution, site=f"https://x.org/{'a' * 180}", contact="a" * 64 + "@x.org"
        )
    except ValueError:
        return
    whole = SignedProfile(**profile.model_dump(), updated_at=2**53 - 1, signature="0x" + "f" * 130)
    assert len(whole.model_dump_json().encode()) <= MOST_BYTES


def test_a_wallet_signs_the_same_message() -> None:
    """By viem's `signTypedData` with the structure of `dashboard/src/wallet/profile.tsx`."""
    account = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"
    signature = (
        "0xab3e8ab128ad059bacc0a4dc5d1708a7d7812ad39602cfb96de2ad2be682caf030"
        "b2dc746bc8516e24e2cec420b374f28331857406fa18f9cfcd8c2a6925cf5a1b"
    )
    profile = SignedProfile(name="Klinik Süd", country="DE", updated_at=1_795_797_794, signature=signature)
    assert profile.is_by(account, 31_337, account)
    assert not profile.model_copy(update={"country": ""}).is_by(account, 31_337, account)


# Storing


def test_put_profile_shows_it_and_replaces_an_earlier_one(network: IndexedNetwork, client: TestClient) -> None:
    assert shown(client) == []
    first = signed(network)
    assert put(client, first).json() == {**first, "account": NODE.address}
    assert shown(client) == [{**first, "account": NODE.address}]
    later = signed(network, Profile(name="Another"), NOW + 1)
    assert put(client, later, NODE.address.lower()).status_code == 200
    for replayed in (first, later):
        answer = put(client, replayed)
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:consilium:problem:profile-outdated")
    assert shown(client) == [{**later, "account": NODE.address}]


FORGED: dict[str, dict[str, Any]] = {
    "another account's": {"account": STRANGER},
    "another chain's": {"chain_id": 1},
    "another contract's": {"staking": STRANGER.address},
    "of the future": {"at": NOW + 10_000},
}


@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED)
def test_put_profile_refuses_forgeries(network: IndexedNetwork, client: TestClient, changes: dict[str, Any]) -> None:
    assert put(client, signed(network, **changes)).status_code == 403
    assert shown(client) == []


@pytest.mark.parametrize(
    "changes", [{"name": "Forged"}, {"updated_at": NOW - 1}, {"contact": ""}, {"signature": "0x" + "00" * 65}]
)
def test_put_profile_refuses_what_was_not_signed(
    network: IndexedNetwork, client: TestClient, changes: dict[str, Any]
) -> None:
    assert put(client, signed(network) | changes).status_code == 403
    assert shown(client) == []


def test_put_profile_refuses_an_account_without_a_node(network: IndexedNetwork, client: TestClient) -> None:
    answer = put(client, signed(network, account=STRANGER), STRANGER.address)
    assert (answer.status_code, "register it first" in answer.json()["detail"]) == (403, True)


def test_put_profile_names_the_wrong_field(network: IndexedNetwork, client: TestClient) -> None:
    answer = put(client, signed(network) | {"name": "Pаypal"})
    assert (answer.status_code, answer.json()["faults"][0]["where"]) == (422, "body.name")


def test_put_profile_refuses_large_bodies(network: IndexedNetwork, client: TestClient) -> None:
    raw = json.dumps(signed(network)) + " " * MOST_BYTES
    assert client.put(f"/v1/profiles/{NODE.address}", content=raw, headers=JSON).status_code == 413
    assert shown(client) == []


def test_put_profile_is_limited(network: IndexedNetwork) -> None:
    with TestClient(app_of(network, limits={"files_per_hour": 2})) as client:
        found = [put(client, signed(network, at=NOW + n)).status_code for n in range(3)]
    assert found == [200, 200, 429]


def test_set_profile_sends_it_and_names_the_file_that_confirms_the_site(
    network: IndexedNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, password, book, file = (tmp_path / name for name in ("key.json", "password", "book.json", "profile.toml"))
    write_keystore(key, NODE, "secret", LIGHT_SCRYPT_N)
    write_private_file(password, "secret")
    network.deployment.write(book)
    settings = SimpleNamespace(keystore=key, password_file=password, deployment=book)
    monkeypatch.setattr(commands, "_open", lambda *_: SimpleNamespace(settings=settings))
    with served(app_of(network)) as url:
        for site, verifying in ((FULL.site, "https://x.example.org/.well-known/consilium.txt"), ("", "")):
            file.write_text(f'name = "Klinikum"\nsite = "{site}"\n')
            said = CliRunner().invoke(main.app, ["hospital", "set-profile", str(file), "--server", url])
            assert said.exit_code == 0, said.output
            wanted = [f"{url} shows this node as Klinikum"]
            wanted += [f"To verify the site, put {NODE.address} on a line of {verifying}"] if verifying else []
            assert [
                line for line in said.output.splitlines() if not line.startswith("{")
            ] == wanted  # without the server's log
            time.sleep(1)  # a profile's time has whole seconds


def test_list_profiles_takes_a_hundred_accounts(client: TestClient) -> None:
    for many, status in ((100, 200), (101, 422), (0, 422)):
        accounts = [f"0x{n:040x}" for n in range(many)]
        assert client.get("/v1/profiles", params={"account": accounts}).status_code == status


# Searching


def hits(client: TestClient, text: str) -> list[dict[str, Any]]:
    items = client.get("/v1/search", params={"q": text}).raise_for_status().json()["items"]
    return [{name: value for name, value in hit.items() if value is not None} for hit in items]


def test_search_finds_addresses_names_numbers_and_transactions(network: IndexedNetwork, client: TestClient) -> None:
    put(client, signed(network))
    node = {"kind": "node", "account": NODE.address, "role": "hospital"}
    task = {"kind": "task", "task": 1, "name": "heart failure"}
    assert hits(client, NODE.address[:12].upper().replace("X", "x")) == [node]
    assert hits(client, NODE.address) == [node, {"kind": "account", "account": NODE.address}]
    assert hits(client, " GRÖSSEN ") == [{"kind": "account", "account": NODE.address, "name": FULL.name}]
    assert hits(client, "universität")[0]["account"] == NODE.address
    assert hits(client, "Heart  F") == hits(client, "1") == hits(client, "#1") == [task]
    registered = hash_of("tx", {"block": network.block, "log_index": 0})
    assert hits(client, "0x" + registered.hex()) == [{"kind": "transaction", "account": NODE.address}]


@pytest.mark.parametrize("text", ["%", "_", "\\", "'", "\x00", "\u202e", "0x", " ", "9" * 100, "0x" + "f" * 64])
def test_search_takes_any_text(client: TestClient, text: str) -> None:
    assert hits(client, text) == []


def test_search_is_quick_with_many_tasks(network: IndexedNetwork, client: TestClient) -> None:
    with network.mined():
        for number in range(2, 602):
            network.propose(number, TASK_FILE.replace("heart failure", f"study {number}"))
    assert len(hits(client, "study")) == 20  # reads all files once
    start = time.monotonic()
    assert hits(client, "study 599") == [{"kind": "task", "task": 599, "name": "study 599"}]
    assert time.monotonic() - start < 1


# Hostile names of tasks that the index had before names were checked

HOSTILE = ["x" * 10_000, "a\u202eb", "a\u200bb", "a" + "\u0301" * 50, "  a  ", "\ue000"]


def test_tasks_with_hostile_names_have_none(network: IndexedNetwork, client: TestClient) -> None:
    with network.mined():
        for number, name in enumerate(HOSTILE, start=2):
            network.propose(number, TASK_FILE.replace("heart failure", name))
    listed = client.get("/v1/tasks").json()["items"]
    assert [one["name"] for one in listed] == [None] * len(HOSTILE) + ["heart failure"]
    fault = client.get("/v1/tasks/2").json()["spec_fault"]
    assert len(fault) < 600
    assert hits(client, "x" * 100) == []
    assert hits(client, "2") == [{"kind": "task", "task": 2}]


def test_profiles_are_kept_in_each_kind_of_database(tmp_path: Path, database_url: str) -> None:
    network = with_node(IndexedNetwork(tmp_path, database_url))
    with TestClient(app_of(network)) as client:
        assert put(client, signed(network)).status_code == 200
        assert put(client, signed(network, Profile(name="Later"), NOW + 1)).status_code == 200
        assert put(client, signed(network)).status_code == 409
    with TestClient(app_of(network)) as client:
        assert [one["name"] for one in shown(client)] == ["Later"]
        assert hits(client, "LATER")[0]["account"] == NODE.address
    network.engine.dispose()
