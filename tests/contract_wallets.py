"""Code of contracts that judge signatures (EIP-1271): a wallet of one owner, and hostile ones."""

MAGIC = "1626ba7e"
YES = f"63{MAGIC}60e01b5f5260205ff3"  # PUSH4 magic, PUSH1 224, SHL, MSTORE at 0, RETURN 32 bytes


def wallet_of(owner: str) -> str:
    """Code: yes if `ecrecover` of the hash and the signature (r, s, v) gives the owner; or else zero."""
    return (
        "6004355f52"  # memory[0] = hash
        "60a43560f81c602052"  # memory[32] = v
        "6040606460403760205f60805f60015afa50"  # memory[64..] = r, s; memory[0] = ecrecover(hash, v, r, s)
        f"5f5173{owner.removeprefix('0x').lower()}146042575f5f5260205ff35b{YES}"
    )


HOSTILE = {
    "reverts": "5f5ffd",
    "runs for ever": "5b5f56",
    "answers with a megabyte": "620f42405ff3",
    "has an invalid instruction": "fe",
    "answers with the magic value and more": f"63{MAGIC}60e01b5f5260405ff3",
    "answers with four bytes": f"63{MAGIC}60e01b5f5260045ff3",
    "answers with the magic value on the right": f"63{MAGIC}5f5260205ff3",
    "answers with one": "60015f5260205ff3",
    "has no code": "",
}
