"""drand relays are believed nothing: what each can do wrong has its name, and the next one is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from consilium_chain.errors import RandomnessUnavailable, RelayFailed
from consilium_chain.rounds.drand_relays import QUICKNET_RELAYS, ROUND_FIELD, fetch_signature
from consilium_chain.rpc.local_node import free_port
from consilium_chain.settings import NodeSettings, read_settings
from consilium_core.errors import ConfigInvalid
from consilium_zk.drand import QUICKNET, QUICKNET_HASH, DrandChain
from consilium_zk.tickets import generate_secret_key, public_key
from drand_relay import ROUNDS, RelayServer, relay_server

ROUND = 1000
POINT = bytes.fromhex(ROUNDS[ROUND]["point"].removeprefix("0x"))
TIMEOUT = 3.0  # seconds
FAULTS: dict[str, str] = {
    "404": "RelayUnreachable",
    "425": "RelayUnreachable",
    "500": "RelayUnreachable",
    "302": "RelayUnreachable",
    "hang": "RelayUnreachable",
    "drip": "RelayUnreachable",
    "another-round": "RelayRoundWrong",
    "another-rounds-signature": "RelaySignatureInvalid",
    "negated-signature": "RelaySignatureInvalid",
    "identity": "RelaySignatureInvalid",
    "no-point": "RelaySignatureInvalid",
    "empty": "RelayAnswerMalformed",
    "web-page": "RelayAnswerMalformed",
    "not-text": "RelayAnswerMalformed",
    "list": "RelayAnswerMalformed",
    "nested": "RelayAnswerMalformed",
    "no-signature": "RelayAnswerMalformed",
    "short-signature": "RelayAnswerMalformed",
    "no-hexadecimal": "RelayAnswerMalformed",
    "round-as-text": "RelayAnswerMalformed",
    "null": "RelayAnswerMalformed",
    "large": "RelayAnswerMalformed",
    "compressed": "RelayAnswerMalformed",
}


@pytest.fixture(scope="module")
def relays() -> Iterator[RelayServer]:
    with relay_server() as server:
        yield server


@pytest.mark.parametrize("round_", ROUNDS)
@pytest.mark.parametrize("kind", ["v1", "v2", "wrong-randomness"])
def test_fetch_signature_gives_published_rounds(relays: RelayServer, kind: str, round_: int) -> None:
    point = bytes.fromhex(ROUNDS[round_]["point"].removeprefix("0x"))
    assert fetch_signature([relays.url(kind)], QUICKNET, round_, TIMEOUT) == point


@pytest.mark.parametrize("fault", FAULTS)
def test_fetch_signature_names_the_fault_and_asks_the_next(relays: RelayServer, fault: str) -> None:
    with pytest.raises(RandomnessUnavailable, match=f"drand round {ROUND} .*{fault}/{ROUND}: .*drand_relays") as caught:
        fetch_signature([relays.url(fault)], QUICKNET, ROUND, TIMEOUT)
    assert caught.value.round == ROUND
    (failure,) = caught.value.failures
    assert isinstance(failure, RelayFailed)
    assert failure.name == FAULTS[fault]
    assert failure.values["url"] == relays.url(fault).replace(ROUND_FIELD, str(ROUND))
    assert fetch_signature([relays.url(fault), relays.url("v2")], QUICKNET, ROUND, TIMEOUT) == POINT


def test_fetch_signature_asks_in_order_and_no_further_than_needed() -> None:
    with relay_server() as relays:
        order = [relays.url(what) for what in ("500", "web-page", "v2", "v1")]
        fetch_signature(order, QUICKNET, ROUND, TIMEOUT)
        assert relays.asked == [f"/{what}/{ROUND}" for what in ("500", "web-page", "v2")]


def test_fetch_signature_tells_every_relays_failure(relays: RelayServer) -> None:
    nobody = f"http://127.0.0.1:{free_port()}/{ROUND_FIELD}"
    with pytest.raises(RandomnessUnavailable) as caught:
        fetch_signature([nobody, relays.url("404"), relays.url("identity")], QUICKNET, ROUND, TIMEOUT)
    assert [f.name for f in caught.value.failures] == ["RelayUnreachable", "RelayUnreachable", "RelaySignatureInvalid"]
    assert all(str(failure) in str(caught.value) for failure in caught.value.failures)


def test_fetch_signature_refuses_another_chains_rounds(relays: RelayServer) -> None:
    other = DrandChain(QUICKNET.genesis, QUICKNET.period, public_key(generate_secret_key(bytes(32))))
    with pytest.raises(RandomnessUnavailable) as caught:
        fetch_signature([relays.url("v2")], other, ROUND, TIMEOUT)
    assert [f.name for f in caught.value.failures] == ["RelaySignatureInvalid"]


def test_default_relays_are_of_quicknet_by_several_operators() -> None:
    assert all(ROUND_FIELD in url and url.startswith("https://") for url in QUICKNET_RELAYS)
    assert all("/quicknet/" in url or QUICKNET_HASH in url for url in QUICKNET_RELAYS)
    assert {url.split("/")[2].split(":")[0] for url in QUICKNET_RELAYS} >= {"api.drand.sh", "drand.cloudflare.com"}


SETTINGS = """
home = "home"
chain_url = "http://127.0.0.1:8545"
deployment = "book.json"
artifacts = "artifacts"
keystore = "key.json"
password_file = "password"
"""


def test_settings_name_relays(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(SETTINGS)
    assert read_settings(path, NodeSettings).drand_relays == QUICKNET_RELAYS
    path.write_text(SETTINGS + 'drand_relays = ["https://drand.example/{round}.json"]\n')
    assert read_settings(path, NodeSettings).drand_relays == ("https://drand.example/{round}.json",)


@pytest.mark.parametrize(
    "relays",
    [
        "[]",
        '"{round}"',
        '["https://drand.example"]',
        '["ftp://drand.example/{round}"]',
        '["drand.example/{round}"]',
        '["https://drand.example:99999/{round}"]',
        '["http://[::1/{round}"]',
    ],
)
def test_settings_refuse_what_is_no_relay(tmp_path: Path, relays: str) -> None:
    path = tmp_path / "node.toml"
    path.write_text(SETTINGS + f"drand_relays = {relays}\n")
    with pytest.raises(ConfigInvalid, match="drand_relays"):
        read_settings(path, NodeSettings)
