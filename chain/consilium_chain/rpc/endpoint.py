"""The only use of web3's provider: a chain node behind a URL, asked by JSON-RPC."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import requests
from consilium_core.visible_text import without_secrets
from web3 import HTTPProvider, Web3
from web3.exceptions import (
    BadFunctionCallOutput,
    BlockNotFound,
    ContractLogicError,
    TransactionNotFound,
    Web3Exception,
    Web3RPCError,
)
from web3.types import RPCEndpoint, RPCResponse
from web3.utils import abi as abi_lookup

from consilium_chain.errors import ChainUnreachable, DeploymentInvalid
from consilium_chain.rpc.event_logs import MALFORMED
from consilium_chain.rpc.reverts import message_of, refusal_of
from consilium_chain.rpc.several_nodes import CONNECT_TIMEOUT, TIMEOUT, Node, SeveralNodes
from consilium_chain.rpc.socket_provider import SCHEMES, SocketProvider

# Bytes of a node's uncompressed answer: logs of some ten thousand events, or several whole blocks.
LARGEST_ANSWER = 1 << 26

# web3 hashes every function of a contract at each call, to find two of the same selector: a quarter of a read's time.
# No compiler lets such a contract pass.
abi_lookup.validate_abi = lambda abi: None  # type: ignore[attr-defined]


class _Provider(HTTPProvider):
    """Refuses answers that are not JSON-RPC 2.0: web3 raises many kinds of errors on them."""

    @staticmethod
    def decode_rpc_response(raw_response: bytes) -> RPCResponse:
        try:
            answer: object = json.loads(raw_response)
        except (ValueError, RecursionError) as error:
            raise requests.exceptions.InvalidJSONError("the answer is not JSON") from error
        if not isinstance(answer, dict) or not {"result", "error"} & answer.keys():
            raise requests.exceptions.InvalidJSONError("the answer is not JSON-RPC")
        return cast(RPCResponse, answer)


def _within_bounds(answer: requests.Response, **_: object) -> None:
    """Reads an answer up to a bound, which requests lacks: a few compressed bytes can become gigabytes."""
    content = bytearray()
    for part in answer.iter_content(1 << 16):
        content += part
        if len(content) > LARGEST_ANSWER:
            answer.close()
            raise requests.exceptions.ContentDecodingError(f"the answer has more than {LARGEST_ANSWER} bytes")
    answer._content = bytes(content)


def _session(url: str) -> requests.Session:
    """With the environment's proxies and certificates, read once: requests reads them again for each request."""
    session = requests.Session()
    found = session.merge_environment_settings(url, {}, None, None, None)
    session.proxies, session.verify = found["proxies"], found["verify"]
    session.trust_env = False
    return session


def _provider(url: str, timeout: float | tuple[float, float], is_patient: bool) -> SocketProvider | _Provider:
    """`timeout`: seconds, or those to connect and those without an answer."""
    if url.startswith(SCHEMES):
        return SocketProvider(url, timeout[1] if isinstance(timeout, tuple) else timeout, LARGEST_ANSWER)
    asking = {"timeout": timeout, "hooks": {"response": _within_bounds}, "headers": _Provider.get_request_headers()}
    again: dict[str, Any] = {} if is_patient else {"exception_retry_configuration": None}
    return _Provider(url, request_kwargs=asking, session=_session(url), **again)


def _follow(provider: object, heard: Callable[[int], None]) -> None:
    if isinstance(provider, SocketProvider):
        provider.heard = heard
        provider.follow()


class Endpoint:
    """A chain node's URL, its web3 client and its chain id. Raises ChainUnreachable.

    `url`: one, or several nodes of the same chain, of which the first that answers is asked.
    `timeout`: seconds without an answer, of several nodes at most TIMEOUT. `is_patient`: asks again if none comes;
    several nodes are asked one after the other.
    """

    def __init__(self, url: str | Sequence[str], timeout: float = 30, is_patient: bool = True) -> None:
        urls = (url,) if isinstance(url, str) else tuple(url)
        self.url, self._several = urls[0], None
        if len(urls) == 1:
            self._only = _provider(self.url, timeout, is_patient)
        else:
            bounds = min(timeout, CONNECT_TIMEOUT), min(timeout, TIMEOUT)
            self._several = SeveralNodes([Node(without_secrets(one), _provider(one, bounds, False)) for one in urls])
        self.web3 = Web3(self._several or self._only)
        for costly in ("validation", "gas_estimate", "ens_name_to_address"):
            # They ask the node for its chain id, twice, before every call; addresses here are never names.
            self.web3.middleware_onion.remove(costly)
        try:
            self.chain_id: int = self.web3.eth.chain_id
        except (requests.exceptions.RequestException, ValueError, Web3Exception) as error:
            raise ChainUnreachable(self.shown_url, type(error).__name__) from error
        if type(self.chain_id) is not int:
            raise ChainUnreachable(self.shown_url, "the server gives no chain id")
        if self._several is not None:
            self._several.chain_id = self.chain_id

    @property
    def shown_url(self) -> str:
        """The URL that is asked now, as errors and screens may show it."""
        return without_secrets(self.url) if self._several is None else self._several.present.shown

    @property
    def shown_urls(self) -> str:
        """All URLs that may be asked, in the same form."""
        return self.shown_url if self._several is None else self._several.shown

    def require_contracts(self, addresses: Sequence[str]) -> None:
        """From now on another node is asked only if it has the code that is at these addresses. One node is not asked.

        Raises ChainUnreachable, DeploymentInvalid if there is none.
        """
        if self._several is None:
            return
        codes = {address: str(self.ask("eth_getCode", address, "latest")) for address in addresses}
        if missing := [address for address, code in codes.items() if code == "0x"]:
            raise DeploymentInvalid(
                f"no contract is at {missing[0]} on the chain at {self.shown_url}: the address book is not of this"
                " chain; pass the right address book, or another URL"
            )
        self._several.codes.update(codes)

    def saw(self, number: int) -> None:
        """The newest block, as the node has just named it. Raises ChainUnreachable if it is behind, and another one
        of several nodes is not: that one is asked now.
        """
        if self._several is not None:
            with self.reading():
                self._several.saw(number)

    def follow(self, heard: Callable[[int], None]) -> None:
        """Has a node behind a WebSocket tell new blocks; see `SocketProvider`. Raises ChainUnreachable."""
        with self.reading():
            if self._several is not None:
                self._several.attempt(lambda provider: _follow(provider, heard))
            else:
                _follow(self._only, heard)

    @property
    def is_told(self) -> bool:
        """True while the node tells new blocks."""
        provider = self._only if self._several is None else self._several.present.provider
        return isinstance(provider, SocketProvider) and provider.is_told

    def ask(self, method: str, *parameters: Any) -> Any:
        """The result of one request, as JSON has it. Raises ChainUnreachable with the words of a node that refuses."""
        answer = self.answer(method, *parameters)
        if "error" in answer:
            raise ChainUnreachable(self.shown_url, message_of(answer))
        return answer["result"]

    def answer(self, method: str, *parameters: Any) -> RPCResponse:
        """The answer to one request: with a result, or with an error."""
        with self.reading():
            return self.web3.provider.make_request(RPCEndpoint(method), parameters)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raises ChainUnreachable if the node does not answer, refuses (a rate limit), or sends malformed data."""
        try:
            yield
        except requests.exceptions.RequestException as error:
            raise ChainUnreachable(self.shown_url, type(error).__name__) from error
        except (BlockNotFound, TransactionNotFound, ContractLogicError, BadFunctionCallOutput):
            raise
        except Web3RPCError as error:
            raise ChainUnreachable(self.shown_url, refusal_of(error)) from error
        except (Web3Exception, *MALFORMED) as error:
            raise ChainUnreachable(self.shown_url, "the server is not a chain node") from error
