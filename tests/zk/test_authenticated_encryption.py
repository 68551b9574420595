"""Words between two hospitals through an aggregator."""

from __future__ import annotations

from consilium_zk.authenticated_encryption import SEAL_OVERHEAD, seal, unseal, unseal_by
from consilium_zk.errors import Malformed, SharesInvalid
from consilium_zk.key_exchange import agreed_point, public_key
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault

ANNA, BERT, EVE = ((private, public_key(private)) for private in (bytes([k]) * 32 for k in (1, 2, 3)))
KEYS = st.binary(min_size=32, max_size=32)


@given(st.binary(min_size=1, max_size=200), KEYS, KEYS, st.binary(max_size=50))
def test_recipient_reads_what_was_sealed(words: bytes, sender: bytes, recipient: bytes, context: bytes) -> None:
    one, other = (sender, public_key(sender)), (recipient, public_key(recipient))
    sealed = seal(words, one, other[1], context)
    assert len(sealed) == len(words) + SEAL_OVERHEAD
    assert unseal(sealed, other, one[1], context) == words
    assert unseal_by(agreed_point(sender, other[1]), sealed, one[1], other[1], context) == words
    assert sealed == seal(words, one, other[1], context)


def test_nobody_else_reads_it_and_nobody_else_has_written_it() -> None:
    sealed = seal(b"two shares", ANNA, BERT[1], b"round 1")
    for attempt in (
        (sealed, EVE, ANNA[1], b"round 1"),  # another recipient
        (sealed, BERT, EVE[1], b"round 1"),  # another sender
        (sealed, BERT, ANNA[1], b"round 2"),  # another round
        (sealed, ANNA, BERT[1], b"round 1"),  # back to its sender
        (sealed[:-1], BERT, ANNA[1], b"round 1"),
        (b"", BERT, ANNA[1], b"round 1"),
    ):
        with raises_fault(SharesInvalid, "CiphertextInvalid"):
            unseal(*attempt)


@given(st.integers(0, 8 * (10 + SEAL_OVERHEAD) - 1))
def test_a_changed_bit_is_seen(bit: int) -> None:
    sealed = bytearray(seal(b"two shares", ANNA, BERT[1], b"round 1"))
    sealed[bit // 8] ^= 1 << bit % 8
    with raises_fault(SharesInvalid, "CiphertextInvalid"):
        unseal(bytes(sealed), BERT, ANNA[1], b"round 1")


def test_keys_that_are_none_are_refused() -> None:
    for key in (bytes(31), bytes(32)):
        with raises_fault(Malformed, "KeyMalformed"):
            seal(b"words", ANNA, key, b"")
        with raises_fault(Malformed, "KeyMalformed"):
            unseal(bytes(40), ANNA, key, b"")
    with raises_fault(Malformed, "KeyMalformed"):
        seal(b"words", (bytes(16), ANNA[1]), BERT[1], b"")


def test_cipher_is_aes_siv() -> None:
    # RFC 5297, appendix A.1
    key = bytes.fromhex("fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    extra = bytes.fromhex("101112131415161718191a1b1c1d1e1f2021222324252627")
    plain = bytes.fromhex("112233445566778899aabbccddee")
    found = AESSIV(key).encrypt(plain, [extra])
    assert found.hex() == "85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c"
