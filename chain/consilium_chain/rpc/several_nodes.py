"""Several nodes of one chain behind one web3 provider: the first that answers is asked.

A request that a node does not answer goes to the next one, once that has shown the same chain, the same contracts and a
head that is not behind. An answer with an error of the call itself is an answer.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import requests
import rlp
from consilium_core.logs import emit
from eth_utils.crypto import keccak
from hexbytes import HexBytes
from web3.providers.base import JSONBaseProvider
from web3.types import RPCEndpoint, RPCResponse

from consilium_chain.errors import ChainUnreachable
from consilium_chain.rpc.reverts import is_nonce_taken
from consilium_chain.rpc.socket_provider import SocketProvider

TIMEOUT, CONNECT_TIMEOUT = 15.0, 4.0  # seconds, which are not tried again
TRIES, PAUSE = 3, 0.25  # of a request at one node; seconds after the first try, then twice as many
LOOK_EVERY = 120.0  # seconds between two looks at the nodes before the present one
STILL = 60.0  # seconds without a new block, after which the others are asked for theirs
MOST_BEHIND, CATCH_UP = 3, 15.0  # blocks that a node may lack, and the seconds in which it must get them
KEPT, KEPT_SECONDS = 8, 120.0  # transactions that are sent again to the next node
OF_THE_CALL = (400, 413, 422)  # statuses of HTTP with which nodes refuse a request that they would take in parts
BLOBS = 3  # the type of transactions with blobs
SEND = "eth_sendRawTransaction"

T = TypeVar("T")


@dataclass(eq=False)
class Node:
    """`shown`: its URL without secrets. `head`: its newest block. `fault`: why it could not be used the last time."""

    shown: str
    provider: JSONBaseProvider
    head: int = -1
    fault: str = ""

    def ask(self, method: str, *parameters: Any) -> Any:
        """The result. Raises requests' errors, also for an error of JSON-RPC."""
        answer = self.provider.make_request(RPCEndpoint(method), parameters)
        if "result" not in answer:
            raise requests.exceptions.InvalidJSONError("the node refuses")
        return answer["result"]

    def newest(self) -> int:
        """The newest block's number. Raises as `ask`, and for another answer."""
        try:
            return int(self.ask("eth_blockNumber"), 16)
        except (TypeError, ValueError) as error:
            raise requests.exceptions.InvalidJSONError("the node names no block") from error


class SeveralNodes(JSONBaseProvider):
    """Raises ChainUnreachable, with the host and the fault of each, if none of them can be used.

    `chain_id`, `codes`: what all nodes must have, by address for contracts; unknown until the first one has answered.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__()
        self._nodes, self._at = tuple(nodes), 0
        self._lock = threading.RLock()  # held while another node is looked for
        self.chain_id: int | None = None
        self.codes: dict[str, str] = {}
        self._head, self._head_since = -1, time.monotonic()
        self._look_at = float("-inf")
        self._sent: deque[tuple[float, str]] = deque(maxlen=KEPT)

    @property
    def present(self) -> Node:
        return self._nodes[self._at]

    @property
    def shown(self) -> str:
        return ", ".join(node.shown for node in self._nodes)

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        if method == SEND:
            return self._send(params)
        return self.attempt(lambda provider: provider.make_request(method, params))

    def _send(self, params: Any) -> RPCResponse:
        """A node that gave no answer may have taken it: then its number is its own, and it counts as sent."""
        tries = 0

        def send(provider: JSONBaseProvider) -> RPCResponse:
            nonlocal tries
            tries += 1
            answer = provider.make_request(RPCEndpoint(SEND), params)
            if tries > 1 and is_nonce_taken(answer):
                return {"jsonrpc": "2.0", "id": 0, "result": _digest(HexBytes(params[0]))}
            return answer

        answer = self.attempt(send)
        if "result" in answer:
            self._sent.append((time.monotonic(), HexBytes(params[0]).to_0x_hex()))
        return answer

    def attempt(self, action: Callable[[JSONBaseProvider], T]) -> T:
        """The action's value at the first node where it raises none of requests' errors. Raises ChainUnreachable."""
        self._look_around()
        faults: dict[Node, str] = {}
        for _ in range(2 * len(self._nodes)):  # another thread may find another node meanwhile
            node = self.present
            try:
                return _tried(node, action)
            except requests.exceptions.RequestException as error:
                if _is_of_the_call(error):
                    raise
                faults[node] = fault_name(error)
            if not self._leave(node, faults):
                break
        raise ChainUnreachable(", ".join(node.shown for node in faults), ", ".join(faults.values()))

    def saw(self, number: int) -> None:
        """A node's newest block. Raises ChainUnreachable after a change from a node that is behind to another one, and
        requests' errors.
        """
        if number > self._head:
            self._head, self._head_since = number, time.monotonic()
        elif number < self._head - MOST_BEHIND:
            with self._lock:
                behind, node = self._head - number, self.present
                if node.newest() >= self._head - MOST_BEHIND:
                    return  # that answer came late
                if self._leave(node, {node: "Behind"}):
                    raise ChainUnreachable(node.shown, f"it is {behind} blocks behind")
                self._head = number  # no node has more: the chain was reorganised

    def _leave(self, node: Node, faults: dict[Node, str]) -> bool:
        """Goes on to the first other node without a fault. False if there is none: `faults` then has all."""
        with self._lock:
            if self.present is not node:
                return True
            for at, other in enumerate(self._nodes):
                if other in faults:
                    continue
                faults[other] = self._fault_of(other)
                if not faults[other]:
                    self._move(at, faults[node])
                    return True
            return False

    def _fault_of(self, node: Node) -> str:
        """Why a node cannot be used now, or "". A new fault is told."""
        try:
            fault = self._looked_at(node)
        except requests.exceptions.RequestException as error:
            fault = fault_name(error)
        except (TypeError, ValueError):
            fault = "NoChainNode"
        if fault and fault != node.fault:
            emit("chain-node-unused", node=node.shown, error=fault)
        node.fault = fault
        return fault

    def _looked_at(self, node: Node) -> str:
        if self.chain_id is not None and int(node.ask("eth_chainId"), 16) != self.chain_id:
            return "ChainMismatch"
        end = time.monotonic() + CATCH_UP
        # No block less than what was seen: logs up to that block would be incomplete, and no error would say so.
        while (head := node.newest()) < self._head:
            if head < self._head - MOST_BEHIND or time.monotonic() > end:
                return "Behind"
            time.sleep(2 * PAUSE)
        node.head = head
        codes = self.codes.items()
        return "" if all(node.ask("eth_getCode", one, "latest") == code for one, code in codes) else "CodeMismatch"

    def _move(self, at: int, why: str) -> None:
        """The new node gets the latest transactions, too: their nonces are taken, and the former may have lost them."""
        before, node = self.present, self._nodes[at]
        for when, raw in self._sent:
            if time.monotonic() - when < KEPT_SECONDS:
                with suppress(requests.exceptions.RequestException):  # most often it has it already
                    node.ask(SEND, raw)
        self._at, self._look_at = at, time.monotonic() + LOOK_EVERY
        self.saw(node.head)
        emit("chain-node-changed", node=node.shown, before=before.shown, error=why)
        before.fault = why
        if isinstance(before.provider, SocketProvider):
            before.provider.close()

    def _look_around(self) -> None:
        """Now and then looks at the other nodes, in a thread of its own: no request waits for it."""
        now = time.monotonic()
        is_still = now - self._head_since > STILL
        if now >= self._look_at and (self._at or is_still):
            self._look_at = now + LOOK_EVERY
            threading.Thread(target=self._look, args=(is_still,), name="chain nodes", daemon=True).start()

    def _look(self, is_still: bool) -> None:
        """Goes back to an earlier node, or on from one whose blocks stand still while others' do not."""
        with self._lock:
            if is_still:
                try:
                    self.saw(self.present.newest())
                except (requests.exceptions.RequestException, ChainUnreachable):
                    return  # the next request finds it out
            for at, node in enumerate(self._nodes):
                if at == self._at and not is_still:
                    return
                if at == self._at or self._fault_of(node):
                    continue
                if node.head > self._head + MOST_BEHIND:
                    return self._move(at, "StandsStill")
                if at < self._at:
                    return self._move(at, "AnswersAgain")


def _tried(node: Node, action: Callable[[JSONBaseProvider], T]) -> T:
    for left in reversed(range(TRIES)):
        try:
            return action(node.provider)
        except requests.exceptions.RequestException as error:
            again = isinstance(error, requests.exceptions.ConnectionError | requests.exceptions.HTTPError)
            if not left or not again or isinstance(error, requests.exceptions.Timeout) or _is_of_the_call(error):
                raise
        time.sleep(PAUSE * 2 ** (TRIES - 1 - left))
    raise AssertionError("the last try ends it")


def _digest(raw: bytes) -> str:
    """A signed transaction's hash, which leaves blobs and their proofs out (EIP-4844)."""
    return "0x" + keccak(raw[:1] + rlp.encode(rlp.decode(raw[1:])[0]) if raw[0] == BLOBS else raw).hex()


def _status_of(error: requests.exceptions.RequestException) -> int | None:
    return None if error.response is None else error.response.status_code


def _is_of_the_call(error: requests.exceptions.RequestException) -> bool:
    return isinstance(error, requests.exceptions.HTTPError) and _status_of(error) in OF_THE_CALL


def fault_name(error: requests.exceptions.RequestException) -> str:
    """Without the error's text, which has the URL."""
    status = _status_of(error)
    return type(error).__name__ if status is None else f"HTTP {status}"
