"""A node's profile: its name and institution, signed by its account. Pure.

The account signs typed data (EIP-712) in the domain of chain and staking contract. A server keeps the profile with the
latest `updated_at`, so nobody can put an earlier one back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlsplit

from consilium_core.notify import HOST, MAIL_ADDRESS
from consilium_core.typed_toml import Section, parse_toml
from consilium_core.visible_text import parse_own_name
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_keys.exceptions import BadSignature
from eth_utils.exceptions import ValidationError
from pydantic import AfterValidator, Field

from consilium_chain.errors import ProfileInvalid
from consilium_chain.typed_data import typed_data

LONGEST_NAME, LONGEST_INSTITUTION, LONGEST_SITE, LONGEST_CONTACT = 60, 100, 200, 100  # characters
MOST_BYTES = 2_048  # of a signed profile as JSON
WELL_KNOWN = "/.well-known/consilium.txt"  # at a site's host: addresses that it verifies (RFC 8615)
STRUCT = {
    "account": "address", "updatedAt": "uint64", "name": "string", "institution": "string", "country": "string",
    "site": "string", "contact": "string",
}  # fmt: skip
# ISO 3166-1 alpha-2.
_CODES = (
    "ADAEAFAGAIALAMAOAQARASATAUAWAXAZBABBBDBEBFBGBHBIBJBLBMBNBOBQBRBSBTBVBWBYBZCACCCDCFCGCHCICKCLCMCNCOCRCUCVC"
    "WCXCYCZDEDJDKDMDODZECEEEGEHERESETFIFJFKFMFOFRGAGBGDGEGFGGGHGIGLGMGNGPGQGRGSGTGUGWGYHKHMHNHRHTHUIDIEILIMIN"
    "IOIQIRISITJEJMJOJPKEKGKHKIKMKNKPKRKWKYKZLALBLCLILKLRLSLTLULVLYMAMCMDMEMFMGMHMKMLMMMNMOMPMQMRMSMTMUMVMWMXM"
    "YMZNANCNENFNGNINLNONPNRNUNZOMPAPEPFPGPHPKPLPMPNPRPSPTPWPYQARERORSRURWSASBSCSDSESGSHSISJSKSLSMSNSOSRSSSTSV"
    "SXSYSZTCTDTFTGTHTJTKTLTMTNTOTRTTTVTWTZUAUGUMUSUYUZVAVCVEVGVIVNVUWFWSYEYTZAZMZW"
)
COUNTRIES = frozenset(re.findall("..", _CODES))
_SITE = re.compile(rf"https://{HOST}(?:/[!-~]*)?")


def _or_empty(parse: Callable[[str], str]) -> AfterValidator:
    return AfterValidator(lambda text: parse(text) if text else "")


def _country(text: str) -> str:
    if text not in COUNTRIES:
        raise ValueError("it is not a country: write the two capital letters of ISO 3166, such as DE")
    return text


def _site(text: str) -> str:
    if not _SITE.fullmatch(text):
        raise ValueError("it is not a web address: write https:// and a host's name in lower case")
    return text


def _contact(text: str) -> str:
    if not MAIL_ADDRESS.fullmatch(text):
        raise ValueError("it is not an e-mail address: write one such as office@example.org")
    return text


class Profile(Section):
    """Texts of a node about itself. All but the name may be empty."""

    name: Annotated[
        str,
        Field(description="1 to 60 visible characters, of one script"),
        AfterValidator(lambda text: parse_own_name(text, LONGEST_NAME)),
    ]
    institution: Annotated[
        str,
        Field(description="at most 100 visible characters, of one script"),
        _or_empty(lambda text: parse_own_name(text, LONGEST_INSTITUTION)),
    ] = ""
    country: Annotated[str, Field(description="ISO 3166-1 alpha-2"), _or_empty(_country)] = ""
    site: Annotated[str, Field(max_length=LONGEST_SITE, description="https URL"), _or_empty(_site)] = ""
    contact: Annotated[str, Field(max_length=LONGEST_CONTACT, description="e-mail address"), _or_empty(_contact)] = ""


def host_of(site: str) -> str:
    """The host of a profile's site; empty without a site."""
    return urlsplit(site).hostname or ""


def verification_file(site: str) -> str:
    """The URL of the file that verifies accounts at a site's host; empty without a site."""
    return f"https://{host_of(site)}{WELL_KNOWN}" if site else ""


class SignedProfile(Profile):
    """`updated_at`: Unix seconds by the signer's clock."""

    updated_at: Annotated[int, Field(ge=1, lt=1 << 53)]
    signature: Annotated[str, Field(pattern=r"^0x[0-9a-f]{130}$", description="65 bytes (EIP-712)")]

    def is_by(self, account: str, chain_id: int, staking: str) -> bool:
        """True if the account signed it for these contracts."""
        message = _message(self, account, self.updated_at, chain_id, staking)
        try:
            signer = Account.recover_message(encode_typed_data(full_message=message), signature=self.signature)
        except (BadSignature, ValidationError, ValueError, TypeError):
            return False
        return bool(signer == account)


def parse_profile(raw: bytes) -> Profile:
    """A profile as TOML. Raises ProfileInvalid."""
    return parse_toml(raw, Profile, "the profile", ProfileInvalid)


def sign_profile(
    profile: Profile, account: LocalAccount, chain_id: int, staking: str, updated_at: int
) -> SignedProfile:
    signed = account.sign_typed_data(full_message=_message(profile, account.address, updated_at, chain_id, staking))
    signature = "0x" + bytes(signed.signature).hex()
    return SignedProfile(**profile.model_dump(), updated_at=updated_at, signature=signature)


def _message(profile: Profile, account: str, updated_at: int, chain_id: int, staking: str) -> dict[str, Any]:
    texts = {name: getattr(profile, name) for name in Profile.model_fields}
    values = {"account": account, "updatedAt": updated_at, **texts}
    return typed_data("ConsiliumProfile", chain_id, staking, {"NodeProfile": STRUCT}, values)
