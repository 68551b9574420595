"""Consilium's cryptography and integer encodings.

Pure: no clock, no network, no randomness of its own (random values are arguments), no machine-learning framework.
The one thing read from disk is the KZG ceremony's setup, lazily and once per process (`kzg.setup`).
Imports nothing from the other rooms; they import this one.

    quantise   floats -> non-negative integers ("lanes"), and means back
    packing    lanes <-> blobs of 4096 scalars, several lanes in a scalar
    blobs      arithmetic on blobs, scalar by scalar, modulo the group order
    kzg        commitments, openings, the challenge that binds an opening to its sender
    curve      G1 in ZCash and EIP-2537 encodings; weighted sums of commitments
    tickets    committee seats: BLS keys, tickets, draws
    canaries   sums turned into known-bad candidates, and back
    agreement  keys that two hospitals derive alike
    masks      what hides one hospital's blobs, and what is left of it in a cohort's sum
    shamir     secrets in shares, any number of which, from a threshold on, give them back
    sealing    words from one hospital to another, through an aggregator that must not read them
    secure_aggregation  a cohort's masked sum: both ends of it
    blame      who broke a masked sum, found without showing an honest hospital's update
    dealing    shares of what removes a hospital's masks, dealt to its cohort so that every fault has a name
    merkle     one hash for many entries, and paths that show one of them
    evaluation what binds a voter to its rows and to having evaluated them, and what it has to show
    encoding   Solidity's abi.encode for the few fixed shapes above
    errors     everything raised, one tree
"""

from .errors import ZkError

__all__ = ["ZkError"]
