"""An operator whose account is a contract (EIP-1271), or signs elsewhere: two steps, and the chain's own judgement."""

from __future__ import annotations

import json
import time
from pathlib import Path

import consilium as api
import pytest
from chain_driver import LocalChain
from command_line import CommandLine, done, refused
from consilium_chain.errors import InviteRefused
from consilium_chain.invites import SignedInvite, read_invite, sign_invite, with_signature
from consilium_client.errors import ConsentError
from contract_wallets import HOSTILE, wallet_of
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_account.signers.local import LocalAccount
from invite_driver import World, invited_world
from raised_faults import raises_fault

OWNER, STRANGER = (Account.from_key("0x" + digits * 32) for digits in ("55", "66"))


@pytest.fixture
def world(consilium: CommandLine, local_chain: LocalChain, tmp_path: Path) -> World:
    """The task's operator is a contract of the owner's."""
    found = invited_world(consilium, local_chain, tmp_path)
    become(found, wallet_of(OWNER.address))
    return found


def become(world: World, code: str) -> None:
    world.chain.rpc("anvil_setCode", world.operator.address, f"0x{code}")


def draft(world: World, operator: str | None = None) -> tuple[int, str]:
    return world.consilium(
        "operator", "invite", str(world.task), "--output", str(world.file), "--superlink", "127.0.0.1:9092/9100",
        "--ca-certificate", str(world.folder / "tls" / "ca.crt"), "--artifacts", str(world.folder / "artifacts"),
        "--rpc", world.chain.node.url, "--address-book", str(world.folder / "book.json"),
        "--operator", operator or world.operator.address,
    )  # fmt: skip


def signature(world: World, by: LocalAccount) -> str:
    typed = json.loads((world.folder / "heart.invite.json").read_text())
    return "0x" + bytes(by.sign_message(encode_typed_data(full_message=typed)).signature).hex()


def finish(world: World, signed: str) -> tuple[int, str]:
    return world.consilium(
        "operator", "finish-invite", str(world.folder / "heart.invite.draft"), "--signature", signed,
        "--output", str(world.file), "--rpc", world.chain.node.url,
    )  # fmt: skip


def init(world: World, *more: str, invite: str | None = None) -> tuple[int, str]:
    return world.init("--yes", "--chain-url", world.chain.node.url, *more, invite=invite)


def other(world: World, signed: SignedInvite) -> str:
    (world.folder / "other.invite").write_bytes(signed.written)
    return str(world.folder / "other.invite")


def test_a_contract_s_owner_signs_what_the_operator_drafts(world: World) -> None:
    done(draft(world), "heart.invite.json the statement to sign (EIP-712)", f"by {world.operator.address}, then")
    assert not world.file.exists()
    refused(world.init("--yes", invite=str(world.folder / "heart.invite.draft")), "error (InviteMalformed)")
    done(finish(world, signature(world, OWNER)), "init --invite heart.invite --chain-url URL")
    refused(world.init("--yes"), "error (InviteNeedsOwnNode)", "pass --chain-url")
    assert not world.home.exists()
    done(init(world), "its contract took this invite's signature", f"Next: consilium hospital join {world.task}")
    client = api.Client(world.home)
    with raises_fault(ConsentError, "NotConfirmed"):
        client.join(world.task, confirm=lambda _: False)
    become(world, wallet_of(STRANGER.address))  # the contract has another owner now
    with raises_fault(InviteRefused, "InviteForged"):
        client.join(world.task, confirm=lambda _: False)


def test_a_signature_that_the_contract_does_not_take_is_none(world: World) -> None:
    done(draft(world))
    for wrong in (signature(world, STRANGER), "0x", "0x" + "00" * 2_048):
        refused(finish(world, wrong), "error (InviteForged)")
    refused(finish(world, "0x" + "00" * 2_049), "error (InviteMalformed)", "signature")
    assert not world.file.exists()
    done(finish(world, signature(world, OWNER)))
    held = read_invite(world.file)
    moved = with_signature(held.model_copy(update={"superlink": "attacker.example.org:443"}), held.signature)
    for forged in (moved, with_signature(held, "0x" + "00" * 65), with_signature(held, "0x")):
        assert SignedInvite.parse(forged.written) == forged  # claims nothing before the chain is asked
        refused(init(world, invite=other(world, forged)), "error (InviteForged)")
    assert not world.home.exists()


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE)
def test_a_contract_that_answers_anything_else_has_signed_nothing(world: World, code: str) -> None:
    done(draft(world))
    signed = signature(world, OWNER)
    become(world, code)
    before = time.monotonic()
    refused(finish(world, signed), "error (InviteForged)")
    assert time.monotonic() - before < 10


def test_a_contract_invites_only_to_its_own_task(world: World) -> None:
    stranger = world.chain.funded().address
    world.chain.rpc("anvil_setCode", stranger, f"0x{wallet_of(OWNER.address)}")
    refused(draft(world, stranger), "error (InviteNotOperators)", world.operator.address)
    refused(draft(world, world.operator.address.lower()[:-1]), "error (AddressMalformed)")
    refused(world.invite("--operator", world.operator.address), "goes without --keystore", code=2)


def test_an_account_with_a_key_signs_elsewhere_too_and_cannot_pose_as_a_contract(world: World) -> None:
    key = world.operator.connection.signer
    for code in ("", "ef0100" + "77" * 20):  # a delegated account (EIP-7702) has its key still
        become(world, code)
        done(draft(world), "the statement to sign (EIP-712)")
        refused(finish(world, signature(world, OWNER)), "error (InviteForged)")
        done(finish(world, signature(world, key)))
    held = read_invite(world.file)
    become(world, "")
    posing = with_signature(held.model_copy(update={"signed_by_contract": True, "name": "me"}), held.signature)
    assert sign_invite(held, key) == held
    refused(init(world, invite=other(world, posing)), "error (InviteForged)")
    done(world.init("--yes"), "signed this invite, and proposed the task")
