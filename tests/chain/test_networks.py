"""The networks file: what ships, and what is refused in one."""

from __future__ import annotations

from pathlib import Path

import pytest
from consilium_chain.deploying.networks import DrandTerms, pick_network, read_networks
from consilium_chain.errors import DeployFailed
from consilium_core.errors import ConfigInvalid
from consilium_core.visible_text import without_secrets
from consilium_zk.drand import QUICKNET
from raised_faults import raises_fault

CHAIN_IDS = {
    "local": 31_337, "sepolia": 11_155_111, "hoodi": 560_048, "base-sepolia": 84_532, "arbitrum-sepolia": 421_614,
    "ethereum": 1, "base": 8_453, "arbitrum": 42_161,
}  # fmt: skip
NETWORK = """
[networks.some]
chain_id = 5
url = "http://127.0.0.1:1"
blobs = true
confirmations = 1
unbonding = 20
vesting = 10
beacon = { kind = "prevrandao", lookahead = 128 }
token = { supply = 1 }
"""


def test_shipped_networks_keep_urls_of_providers_out() -> None:
    networks = read_networks(None).networks
    assert {name: network.chain_id for name, network in networks.items()} == CHAIN_IDS
    assert [name for name, network in networks.items() if network.url is not None] == ["local"]
    rollups = {name: network for name, network in networks.items() if not network.blobs}
    assert list(rollups) == ["base-sepolia", "arbitrum-sepolia", "base", "arbitrum"]
    assert {network.beacon.kind for network in rollups.values()} == {"quicknet"}


def test_unknown_network_is_refused_with_those_known() -> None:
    with raises_fault(
        DeployFailed, "NetworkUnknown",
        match="choose arbitrum, arbitrum-sepolia, base, base-sepolia, ethereum, hoodi, local, sepolia, or add it",
    ):  # fmt: skip
        pick_network(read_networks(None), "goerli")


def test_url_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    network = pick_network(read_networks(None), "sepolia")
    monkeypatch.delenv("CONSILIUM_SEPOLIA_URL", raising=False)
    with pytest.raises(ConfigInvalid, match="CONSILIUM_SEPOLIA_URL is not set; set it to the URL"):
        network.endpoint()
    monkeypatch.setenv("CONSILIUM_SEPOLIA_URL", "https://node.example/v3/key\n")
    assert network.endpoint() == "https://node.example/v3/key"


FAULTS = {
    "no url": ('url = "http://127.0.0.1:1"', "", "set either url or url_env"),
    "both urls": ("blobs = true", 'blobs = true\nurl_env = "NAME"', "set either url or url_env"),
    "url as variable": ('url = "http://127.0.0.1:1"', 'url_env = "http://host/s3cret"', "some.url_env"),
    "unbonding below vesting": (
        "unbonding = 20",
        "unbonding = 9",
        r"unbonding \(9 s\) must be at least vesting \(10 s\)",
    ),
    "no vesting": ("vesting = 10", "vesting = 0", "some.vesting"),
    "period above uint32": ("unbonding = 20", "unbonding = 4294967296", "some.unbonding"),
    "unknown key": ("blobs = true", "blobs = true\nprivate_key = 1", "some.private_key"),
    "blobs as text": ("blobs = true", 'blobs = "yes"', "some.blobs"),
    "unknown beacon": ('"prevrandao"', '"dice"', "some.beacon"),
    "no lookahead": ("lookahead = 128", "lookahead = 0", "some.beacon.prevrandao.lookahead"),
    "lookahead within two epochs": ("lookahead = 128", "lookahead = 127", r"lookahead \(127 blocks\).* quicknet"),
    "drand without key": (
        '{ kind = "prevrandao", lookahead = 128 }',
        '{ kind = "drand", lookahead = 2 }',
        "public_key",
    ),
    "drand with no key": (
        '{ kind = "prevrandao", lookahead = 128 }',
        f'{{ kind = "drand", lookahead = 2, genesis = 1, period = 3, public_key = "{"ab" * 96}" }}',
        "public_key is not a valid key",
    ),
    "supply above uint96": ("supply = 1", "supply = 79228162515", "some.token.supply"),
    "supply and address": ("supply = 1", f'supply = 1, address = "0x{"00" * 20}"', "set either supply or address"),
    "address without checksum": ("supply = 1", f'address = "0x{"ab" * 20}"', "checksum"),
    "no TOML": ("blobs = true", "blobs true", "is not TOML"),
    "no networks": (NETWORK, "[networks]", "networks"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_networks_file_names_its_fault(tmp_path: Path, fault: str) -> None:
    old, new, words = FAULTS[fault]
    assert NETWORK.count(old) == 1
    path = tmp_path / "networks.toml"
    path.write_text(NETWORK)
    read_networks(path)
    path.write_text(NETWORK.replace(old, new))
    with pytest.raises(ConfigInvalid, match=words) as caught:
        read_networks(path)
    assert "s3cret" not in str(caught.value)


def test_another_drand_chain_is_named_by_its_terms(tmp_path: Path) -> None:
    path = tmp_path / "networks.toml"
    key = "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451"
    key += "0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
    terms = f'{{ kind = "drand", lookahead = 30, genesis = 1692803367, period = 3, public_key = "{key}" }}'
    path.write_text(NETWORK.replace('{ kind = "prevrandao", lookahead = 128 }', terms))
    beacon = read_networks(path).networks["some"].beacon
    assert isinstance(beacon, DrandTerms)
    assert (beacon.contract, beacon.chain) == ("DrandBeacon", QUICKNET)


def test_prevrandao_is_asked_for_four_epochs_ahead_on_public_chains_and_two_blocks_on_the_local_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "networks.toml"
    path.write_text(NETWORK.replace(", lookahead = 128", ""))
    assert read_networks(path).networks["some"].beacon.lookahead == 4 * 32
    shipped = read_networks(None).networks
    assert shipped["local"].beacon.lookahead == 2
    assert {network.beacon.kind for name, network in shipped.items() if name != "local"} == {"quicknet"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("http://127.0.0.1:8545/", "http://127.0.0.1:8545"),
        ("https://user:s3cret@node.example", "https://node.example/…"),
        ("https://node.example:443/v3/s3cret", "https://node.example:443/…"),
        ("https://node.example?key=s3cret", "https://node.example/…"),
        ("http://[::1]:8545/s3cret", "http://[::1]:8545/…"),
        ("s3cret", "a URL without a host"),
        ("http://host:s3cret", "a URL without a host"),
        ("http://[s3cret", "a URL without a host"),
    ],
)
def test_shown_url_holds_no_secret(url: str, shown: str) -> None:
    assert without_secrets(url) == shown
