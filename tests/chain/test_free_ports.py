"""Ports for processes that start later, some of them next to each other."""

from __future__ import annotations

import random
import socket

import pytest
from consilium_chain.rpc.local_node import free_ports


def test_consecutive_ports_pass_over_one_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        first = free_ports(4)
        taken.bind(("127.0.0.1", first + 1))
        taken.listen()
        drawn = iter([first, first + 1, first + 2])
        monkeypatch.setattr(random, "randrange", lambda *_: next(drawn))
        assert free_ports(2) == first + 2


def test_none_of_them_is_one_that_the_system_hands_out() -> None:
    for _ in range(20):
        assert 10_000 <= free_ports(20) <= 32_768 - 20
