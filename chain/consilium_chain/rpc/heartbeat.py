"""Asks a chain node for its newest block, at the chain's pace, once for all threads of a connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Sequence

from consilium_chain.errors import ChainUnreachable
from consilium_chain.rpc.endpoint import Endpoint
from consilium_chain.rpc.local_node import CHAIN_ID
from consilium_chain.rpc.looks import MOST_CALLS, Asked, Look, parse_look, program
from consilium_chain.rpc.pace import FIRST_PAUSE, LONGEST_PAUSE, PUBLIC_PAUSE, Pace

SILENCE = 2  # block times without news, after which a node that tells new blocks is asked


class Heartbeat:
    """With each question it reads again what its users want to know of each block. Raises ChainUnreachable.

    More than `MOST_CALLS` reads take several requests: the look then has the oldest of their blocks' number and time.
    While a local chain is fast, or its pace unknown, `look` always asks.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()  # held while one thread asks, so that others find the answer
        self._wanted: dict[Hashable, tuple[Asked, ...]] = {}
        self._latest: Look | None = None
        self.pace = Pace(least_pause=FIRST_PAUSE if endpoint.chain_id == CHAIN_ID else PUBLIC_PAUSE)
        self._news = threading.Condition()  # never held while a thread asks: answers and news come from one thread
        self._told = self._asked_for = -1  # the block that the node has told last, and that of the latest question

    def look(self, user: Hashable, asked: Sequence[Asked]) -> Look:
        """The newest look, with these answers. From now on each look has them, until this `user` asks for others."""
        with self._lock:
            self._wanted[user] = tuple(asked)
            latest = self._latest
            is_current = self.pace.may_lag and time.monotonic() < self._due_at()
            if latest is not None and is_current and latest.answers.keys() >= set(asked):
                return latest
            return self._ask()

    def forget(self, user: Hashable) -> None:
        with self._lock:
            self._wanted.pop(user, None)

    def reach(self, number: int) -> None:
        """The chain has this block: an older look is not good any more."""
        with self._lock:
            if number > self.pace.number:
                self.pace = self.pace.due()

    def wait_after(self, seen: int, longest: float) -> int:
        """Waits for a block after `seen`, at most `longest` seconds. Returns the newest known block's number."""
        end = time.monotonic() + longest
        while True:
            self._endpoint.follow(self._hear)
            with self._lock:
                if self.pace.number <= seen and time.monotonic() >= self._due_at():
                    self._ask()
                number, told, now = self.pace.number, self._told, time.monotonic()
            if number > seen or now > end:
                return number
            self._pause(max(min(self._due_at(), end) - now, 0.001), told)

    def _pause(self, seconds: float, told: int) -> None:
        """Or until the node tells another block than `told`."""
        if not self._endpoint.is_told:
            time.sleep(seconds)
            return
        with self._news:
            self._news.wait_for(lambda: self._told != told, seconds)

    def _hear(self, number: int) -> None:
        with self._news:
            self._told = number
            self._news.notify_all()

    def _due_at(self) -> float:
        """When to ask next: a node that tells new blocks is asked then, or after a long silence."""
        if not self._endpoint.is_told or self._told == self._asked_for > self.pace.number:  # told, and not yet shown
            return self.pace.next_at
        if self._told > self.pace.number:
            return float("-inf")
        return self.pace.next_at + SILENCE * (self.pace.block_seconds or LONGEST_PAUSE)

    def _ask(self) -> Look:
        asked = list(dict.fromkeys(one for several in self._wanted.values() for one in several))
        parts = [asked[at : at + MOST_CALLS] for at in range(0, len(asked), MOST_CALLS)] or [[]]
        before, self.pace = self.pace, self.pace.due()  # if no answer comes, the caller's policy says when to try again
        at, self._asked_for = time.monotonic(), self._told
        looks = [self._ask_for(part) for part in parts]
        answers = {one: answer for look in looks for one, answer in look.answers.items()}
        oldest = min(looks, key=lambda look: look.number)  # a block may come between the parts
        self._endpoint.saw(oldest.number)
        self._latest = Look(oldest.number, oldest.time, answers)
        self.pace = before.answered(at, oldest.number, oldest.time)
        return self._latest

    def _ask_for(self, asked: Sequence[Asked]) -> Look:
        answer = self._endpoint.ask("eth_call", {"data": "0x" + program(asked).hex()}, "latest")
        try:
            return parse_look(asked, answer)
        except (TypeError, ValueError) as error:
            raise ChainUnreachable(self._endpoint.shown_url, "the server is not a chain node") from error
