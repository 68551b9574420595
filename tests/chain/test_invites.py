"""An invite: each part is signed, nothing in it is secret, and nothing else is read."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from address_books import made_up_book
from consilium_chain.errors import InviteRefused
from consilium_chain.invites import (
    FORMAT,
    MOST_BYTES,
    PREFIX,
    Invite,
    SignedInvite,
    certificates_pem,
    read_invite,
    sign_invite,
    with_signature,
)
from consilium_chain.rpc.local_node import CHAIN_ID
from consilium_chain.wallet_signatures import MOST_SIGNATURE
from consilium_server.certificates import ensure_certificates
from eth_account import Account
from eth_account.messages import encode_typed_data
from raised_faults import raises_fault

OPERATOR = Account.from_key("0x" + "11" * 32)
STRANGER = Account.from_key("0x" + "22" * 32)
PUBLIC = 560_048
NOW = 1_800_000_000
BOOK = made_up_book()
VECTOR = Path(__file__).parents[1] / "vectors" / "invite_to_one_task.txt"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> str:
    return certificates_pem(ensure_certificates(tmp_path_factory.mktemp("tls")).authority.read_bytes())


Made = Callable[..., Invite]


@pytest.fixture
def made(authority: str) -> Made:
    def make(**changes: Any) -> Invite:
        return Invite.model_validate(
            {
                "format": FORMAT, "name": "Charité", "deployment": replace(BOOK, chain_id=PUBLIC),
                "chain_url": "https://rpc.hoodi.ethpandaops.io", "artifacts": ["https://artifacts.example.org/a"],
                "task": 3, "superlink": "fl.example.org:443", "authority": authority, "operator": OPERATOR.address,
                "expires_at": NOW + 1, "sponsor_url": "https://sponsor.example.org:8443",
                "sponsor_authority": authority, "report_to": "https://api.example.org",
            } | changes
        )  # fmt: skip

    return make


def test_a_file_and_a_link_are_the_same_invite(made: Made, tmp_path: Path) -> None:
    signed = sign_invite(made(), OPERATOR)
    path = tmp_path / "heart.invite"
    path.write_bytes(signed.written)
    assert read_invite(path) == read_invite(str(path)) == read_invite(signed.link) == signed
    assert SignedInvite.parse(b"\n" + signed.link.encode() + b"\n") == signed
    assert len(sign_invite(made(sponsor_authority=None), OPERATOR).link) < 2_500
    signed.require_current(NOW)
    with raises_fault(InviteRefused, "InviteExpired"):
        signed.require_current(NOW + 1)


def test_every_changed_value_breaks_the_signature(made: Made, authority: str, tmp_path: Path) -> None:
    signed = sign_invite(made(), OPERATOR)
    other = certificates_pem(ensure_certificates(tmp_path).authority.read_bytes())
    changed: dict[str, Any] = {
        "name": "Charite", "chain_url": "https://rpc.example.org", "artifacts": ["https://other.example.org"],
        "task": 4, "superlink": "fl.example.org:444", "authority": other, "operator": STRANGER.address,
        "expires_at": NOW + 2, "sponsor_url": "", "sponsor_authority": other, "report_to": "",
    }  # fmt: skip
    changed |= {
        f"deployment.{name}": value
        for name, value in {
            "chain_id": 1, "first_block": 2, "token": STRANGER.address, "staking": STRANGER.address, "blobs": False,
            "beacon": STRANGER.address, "tasks": STRANGER.address, "model_shares": STRANGER.address,
            "sponsored_account": STRANGER.address,
            "beacon_kind": "DrandBeacon" if BOOK.beacon_kind == "PrevrandaoBeacon" else "PrevrandaoBeacon",
        }.items()
    }  # fmt: skip
    fields = json.loads(signed.written)
    unsigned = {"format", "signature", "deployment"}
    assert {*fields, *(f"deployment.{one}" for one in fields["deployment"])} == {*changed, *unsigned}
    for name, value in changed.items():
        tree = json.loads(signed.written)
        place = tree["deployment"] if name.startswith("deployment.") else tree
        assert place[name.removeprefix("deployment.")] != value
        place[name.removeprefix("deployment.")] = value
        with raises_fault(InviteRefused, "InviteForged"):
            SignedInvite.parse(json.dumps(tree).encode())


SHARDS = [{"task": task, "superlink": f"fl.example.org:443/{9097 + task}"} for task in range(4, 19)]


def test_further_shards_are_signed_too(made: Made) -> None:
    signed = sign_invite(made(shards=SHARDS), OPERATOR)
    assert signed.superlinks == {3: "fl.example.org:443"} | {one["task"]: one["superlink"] for one in SHARDS}
    assert SignedInvite.parse(signed.link.encode()) == SignedInvite.parse(signed.written) == signed
    assert len(signed.written) < MOST_BYTES / 2
    assert signed.shown_tasks.endswith("16, 17 or 18")
    tree = json.loads(signed.written)
    moved = [SHARDS[0] | {"superlink": "attacker.example.org:443"}, *SHARDS[1:]]
    for shards in (SHARDS[:-1], SHARDS[::-1], moved, [SHARDS[0] | {"task": 99}, *SHARDS[1:]], []):
        with raises_fault(InviteRefused, "InviteForged"):
            SignedInvite.parse(json.dumps(tree | {"shards": shards}).encode())


def test_an_invite_to_one_task_shows_nothing_of_shards(made: Made) -> None:
    """The vector's signature still holds: what invites to several tasks have leaves no trace in its bytes."""
    raw = VECTOR.read_bytes()
    held = SignedInvite.parse(raw)
    assert (held.task, held.shards, held.name) == (3, (), "Charité")
    assert (held.link + "\n").encode() == raw
    assert sign_invite(held, OPERATOR) == held
    assert "shards" not in json.loads(sign_invite(made(), OPERATOR).written)


def test_a_contracts_signature_is_bounded_and_a_keys_has_one_length(made: Made) -> None:
    """Only the chain can judge it: parsing claims nothing."""
    draft = made(signed_by_contract=True)
    for length in (0, 1, 65, MOST_SIGNATURE):
        signed = with_signature(draft, "0x" + "AB" * length)
        assert (SignedInvite.parse(signed.link.encode()), len(signed.signature)) == (signed, 2 + 2 * length)
    for wrong in ("", "0x1", "ab" * 65, "0x" + "zz" * 65, "0x" + "ab" * (MOST_SIGNATURE + 1)):
        with raises_fault(InviteRefused, "InviteMalformed", match="signature"):
            with_signature(draft, wrong)
    own = sign_invite(made(), OPERATOR)
    for length in (0, 64, 66, MOST_SIGNATURE):
        with raises_fault(InviteRefused, "InviteMalformed", match="a key's has 65 bytes"):
            with_signature(made(), "0x" + "ab" * length)
    assert draft.message() != made().message()  # the kind of signer is signed, too
    with raises_fault(InviteRefused, "InviteMalformed", match="signature"):
        SignedInvite.parse(draft.written)
    with raises_fault(InviteRefused, "InviteMalformed", match="signature"):
        Invite.parse(own.written)
    assert Invite.parse(draft.written) == draft
    assert encode_typed_data(full_message=json.loads(json.dumps(draft.typed))) == draft.message()


def test_every_tampered_byte_is_refused(made: Made) -> None:
    """Or is of no meaning: a blank, or a letter's case in an address."""
    signed = sign_invite(made(sponsor_authority=None), OPERATOR)
    raw = json.dumps(json.loads(signed.written)).encode()
    for place in range(0, len(raw), 7):
        tampered = bytearray(raw)
        tampered[place] ^= 0x01
        with pytest.raises(InviteRefused):
            SignedInvite.parse(bytes(tampered))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Char\u202eité"), ("name", "x" * 61), ("name", "0x" + "1" * 40), ("task", 0), ("task", 1 << 53),
        ("deployment", replace(BOOK, chain_id=0)),
        ("deployment", replace(BOOK, chain_id=1 << 53)), ("deployment", replace(BOOK, first_block=-1)),
        ("chain_url", "https://h/\x07"), ("chain_url", "https://" + "h" * 293), ("artifacts", []),
        ("artifacts", ["https://h"] * 9), ("superlink", "fl.example.org"), ("superlink", "fl.example.org:65536"),
        ("superlink", "fl.exa mple.org:443"), ("superlink", "user@fl.example.org:443"), ("authority", ""),
        ("authority", "no certificate"), ("operator", "0x" + "ab" * 20), ("operator", "me"), ("expires_at", 0),
        ("expires_at", 1 << 37), ("password", "hush"),
        ("shards", [{"task": 3, "superlink": "h:1"}]), ("shards", [{"task": 4, "superlink": "h:1"}] * 2),
        ("shards", [{"task": task, "superlink": "h:1"} for task in range(4, 20)]),
        ("shards", [{"task": 0, "superlink": "h:1"}]), ("shards", [{"task": 4, "superlink": "h"}]),
        ("shards", [{"task": 4}]), ("shards", [{"task": 4, "superlink": "h:1", "authority": ""}]),
    ],
)  # fmt: skip
def test_values_out_of_bounds_are_no_invite(made: Made, field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        made(**{field: value})


def test_certificates_bring_nothing_else(made: Made, authority: str) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n"
    assert certificates_pem((authority + key).encode()) == authority
    for wrong in (authority + key, authority + "\n", authority * 5):
        with pytest.raises(ValueError, match="authority"):
            made(authority=wrong)
    assert made(authority=authority * 4).fingerprint == made().fingerprint


@pytest.mark.parametrize(
    ("field", "url"),
    [
        ("chain_url", "http://rpc.example.org"), ("chain_url", "http://127.0.0.1:8545"), ("chain_url", "file:///etc"),
        ("chain_url", "https://user:hush@rpc.example.org"), ("chain_url", "https://rpc.example.org/?apikey=hush"),
        ("chain_url", "https://rpc.example.org/?"), ("chain_url", "https://rpc.example.org/#hush"),
        ("chain_url", "https://mainnet.infura.io/v3/" + "0a1b" * 8), ("chain_url", "https:///rpc"), ("chain_url", ""),
        ("chain_url", f"https://{'0a1b' * 8}.rpc.example.org"), ("chain_url", "https://rpc.example.org:port"),
        ("chain_url", "https://[::1"), ("artifacts", "file:///etc"), ("artifacts", "/etc"), ("artifacts", "artifacts"),
        ("artifacts", "http://artifacts.example.org"), ("artifacts", "https://key:hush@artifacts.example.org"),
        ("artifacts", "memory://hush"), ("artifacts", "ftp://artifacts.example.org"),
        ("artifacts", "http://127.0.0.1:80"), ("sponsor_url", "http://sponsor.example.org"),
        ("sponsor_url", "wss://sponsor.example.org"), ("report_to", "https://user@api.example.org"),
    ],
)  # fmt: skip
def test_urls_are_public_and_without_secrets_on_both_sides(made: Made, field: str, url: str) -> None:
    unsafe = made(**{field: [url] if field == "artifacts" else url})
    with raises_fault(InviteRefused, "InviteUnsafe", match=field) as refused:
        sign_invite(unsafe, OPERATOR)
    assert "hush" not in str(refused.value)
    signature = "0x" + bytes(OPERATOR.sign_message(unsafe.message()).signature).hex()
    sent = SignedInvite(**dict(unsafe), signature=signature).written
    with raises_fault(InviteRefused, "InviteUnsafe", match=field):
        SignedInvite.parse(sent)


def test_an_invite_of_a_local_chain_may_stay_on_its_machine(made: Made) -> None:
    local = {"deployment": replace(BOOK, chain_id=CHAIN_ID), "chain_url": "http://127.0.0.1:8545"}
    for store in ("/srv/artifacts", "http://localhost:8080/artifacts"):
        sign_invite(made(**local, artifacts=[store]), OPERATOR)
    for unsafe in ({"chain_url": "http://10.0.0.1:8545"}, {"artifacts": ["artifacts"]}, {"artifacts": ["file:///srv"]}):
        with raises_fault(InviteRefused, "InviteUnsafe"):
            sign_invite(made(**{**local, **unsafe}), OPERATOR)


def test_stores_without_a_host_name_are_public_too(made: Made) -> None:
    sign_invite(made(artifacts=["s3://bucket/consilium", "ipfs://" + "bafy" * 14]), OPERATOR)


def test_others_files_are_refused_by_name(made: Made, tmp_path: Path) -> None:
    signed = sign_invite(made(), OPERATOR)
    tree = json.loads(signed.written)
    forged = SignedInvite(
        **dict(made()), signature="0x" + bytes(STRANGER.sign_message(made().message()).signature).hex()
    )
    cases = {
        "InviteForged": [forged.written, json.dumps(tree | {"signature": "0x" + "00" * 65}).encode()],
        "InviteVersionUnknown": [json.dumps(tree | {"format": "consilium-invite-2\n" * 9}).encode(), b"{}"],
        "InviteTooLong": [signed.written + b" " * (MOST_BYTES + 1 - len(signed.written)), b"x" * 10_000_000],
        "InviteMalformed": [
            b"", b"[]", b"\xff", b"[" * MOST_BYTES, b'{"format": "consilium-invite-1"}',
            signed.written.replace(b'"task": 3,', b'"task": 3, "task": 4,'), PREFIX.encode() + b"!", PREFIX.encode(),
            PREFIX.encode() + base64.urlsafe_b64encode(b"[1]"), json.dumps(tree | {"signature": "0x"}).encode(),
        ],
    }  # fmt: skip
    for name, files in cases.items():
        for raw in files:
            with raises_fault(InviteRefused, name) as refused:
                SignedInvite.parse(raw)
            assert len(str(refused.value)) < 3_000
            (tmp_path / "sent").write_bytes(raw)
            with raises_fault(InviteRefused, name):
                read_invite(tmp_path / "sent")
    longest = signed.written + b" " * (MOST_BYTES - len(signed.written))
    assert SignedInvite.parse(longest) == signed
    for missing in (tmp_path / "none", tmp_path, "a\0b"):
        with raises_fault(InviteRefused, "InviteUnreadable"):
            read_invite(missing)
    before = time.monotonic()
    with raises_fault(InviteRefused, "InviteTooLong"):
        read_invite("/dev/zero")
    assert time.monotonic() - before < 5
