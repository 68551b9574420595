"""A real Chromium, and a wallet in it: an EIP-1193 provider, announced as EIP-6963 says, whose key is here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
from eth_account import Account
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
WHY_NOT = "chromium is not installed: apt-get install chromium"

expect.set_options(timeout=20_000)  # a busy machine takes longer than the usual five seconds

# isValidSignature of whatever: bytes4(0x1626ba7e), of EIP-1271.
SAYS_YES = "0x631626ba7e60e01b60005260206000f3"
CONTRACTS_SIGNATURE = "0x" + "5a" * 130  # of two owners, as a Safe has it

PROVIDER = """
(() => {
  const listeners = {}
  const provider = {
    request: async ({ method, params }) => {
      await window.testWalletHolds?.(method)
      const { result, error } = JSON.parse(await window.testWallet(JSON.stringify({ method, params: params ?? [] })))
      if (error) throw Object.assign(new Error(error.message), error)
      if (method === 'wallet_switchEthereumChain') window.testWalletEmits('chainChanged', params[0].chainId)
      return result
    },
    on: (event, listener) => (listeners[event] ??= []).push(listener),
    removeListener: (event, listener) => {
      listeners[event] = (listeners[event] ?? []).filter((one) => one !== listener)
    },
  }
  window.ethereum = provider
  window.testWalletEmits = (event, value) => (listeners[event] ?? []).forEach((listener) => listener(value))
  const icon = 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>'
  const uuid = '350670db-19fa-4704-a166-e52e178b59d2'
  const info = { uuid, name: 'Test Wallet', rdns: 'org.example.wallet', icon }
  const announce = () => window.dispatchEvent(
    new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }))
  window.addEventListener('eip6963:requestProvider', announce)
  announce()
})()
"""


class Refusal(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.said = {"code": code, "message": message} | ({} if data is None else {"data": data})
        super().__init__(message)


class Wallet:
    """Signs with a key of its own, and asks the chain's node. `declines`: its owner says no to whatever is asked.
    `sends_at_most`: transactions, after which the owner says no. `is_busy`: it waits for an answer to another request.
    `hold` of a page keeps its answers back.

    A request names its account: that is `account`, or one that was, before `switch`. `become_contract`: EIP-1271 and no
    key. `lock`: it names no account until `unlock`.

    `gas`: what it sets instead of what the page proposes. `nonces_ahead`: by how many a transaction comes too early,
    and waits. `sent`: transactions, the latest last. `chain`: which chain it is on, until it is told to switch.
    `networks`, `tokens`: those that it was asked to add.
    """

    def __init__(self, url: str, account: LocalAccount) -> None:
        self.url, self.account = url, account
        self.former: list[LocalAccount] = []
        self._is_contract = self._is_locked = False
        self.declines = self.is_busy = False
        self.sends_at_most: int | None = None
        self.gas: int | None = None
        self.nonces_ahead = 0
        self.sent: list[dict[str, Any]] = []
        self.own_chain = int(self.ask("eth_chainId"), 16)
        self.chain = self.own_chain
        self.is_connected = False
        self.asked: list[str] = []
        self.networks: list[dict[str, Any]] = []
        self.tokens: list[dict[str, Any]] = []

    def ask(self, method: str, *params: Any) -> Any:
        """The node. Raises Refusal."""
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = httpx.post(self.url, json=question, timeout=20).json()
        if error := answer.get("error"):
            raise Refusal(error["code"], error["message"], error.get("data"))
        return answer["result"]

    def install(self, page: Page) -> None:
        page.expose_function("testWallet", self._request)
        page.add_init_script(PROVIDER)

    def _request(self, asked: str) -> str:
        question = json.loads(asked)
        self.asked.append(question["method"])
        try:
            return json.dumps({"result": self._answer(question["method"], question["params"])})
        except Refusal as refusal:
            return json.dumps({"error": refusal.said})

    def _answer(self, method: str, params: Any) -> Any:
        match method:
            case "eth_requestAccounts":
                self._ask_owner()
                self.is_connected = True
                return [self.account.address]
            case "eth_accounts":
                return [self.account.address] if self.is_connected and not self._is_locked else []
            case "eth_chainId":
                return hex(self.chain)
            case "wallet_switchEthereumChain":
                self._ask_owner()
                self.chain = int(params[0]["chainId"], 16)
                return None
            case "wallet_addEthereumChain":
                self._ask_owner()
                self.networks.append(params[0])
                return None
            case "wallet_watchAsset":
                self._ask_owner()
                self.tokens.append(params["options"])
                return True
            case "wallet_requestPermissions":
                self._ask_owner()
                self.is_connected = True
                return [{"parentCapability": "eth_accounts"}]
            case "wallet_revokePermissions":
                self.is_connected = False
                return None
            case "eth_sendTransaction":
                self._ask_owner()
                if self.sends_at_most is not None and len(self.sent) >= self.sends_at_most:
                    raise Refusal(4001, "User rejected the request.")
                return self._send(params[0])
            case "eth_signTypedData_v4":
                self._ask_owner()
                signer, message = self._signer(params[0]), json.loads(params[1])
                if int(message["domain"]["chainId"]) != self.chain:
                    raise Refusal(-32603, f"Provided chainId must match the active chainId {self.chain}")
                if self._is_contract:
                    return CONTRACTS_SIGNATURE
                return signer.sign_typed_data(full_message=message).signature.to_0x_hex()
            case "personal_sign":
                self._ask_owner()
                signer, text = self._signer(params[1]), encode_defunct(hexstr=params[0])
                if self._is_contract:
                    return CONTRACTS_SIGNATURE
                return signer.sign_message(text).signature.to_0x_hex()
            case _:
                return self.ask(method, *params)

    def _ask_owner(self) -> None:
        if self.is_busy:
            raise Refusal(-32002, "Request of type 'wallet_requestPermissions' already pending for origin.")
        if self.declines:
            raise Refusal(4001, "User rejected the request.")
        if self._is_locked:
            raise Refusal(4100, "The requested account has not been authorized by the user.")

    def _signer(self, address: str) -> LocalAccount:
        for known in (self.account, *self.former):
            if known.address.lower() == address.lower():
                return known
        raise Refusal(4100, "The requested account has not been authorized by the user.")

    def switch(self, page: Page, account: LocalAccount) -> None:
        self.former.append(self.account)
        self.account = account
        self._tell(page, "accountsChanged", [account.address])

    def switch_chain(self, page: Page, chain: int) -> None:
        self.chain = chain
        self._tell(page, "chainChanged", hex(chain))

    def lock(self, page: Page) -> None:
        self._is_locked = True
        self._tell(page, "accountsChanged", [])

    def unlock(self, page: Page) -> None:
        self._is_locked = False
        self._tell(page, "accountsChanged", [self.account.address])

    def _tell(self, page: Page, event: str, value: Any) -> None:
        page.evaluate("([event, value]) => window.testWalletEmits(event, value)", [event, value])

    def become_contract(self) -> None:
        """One that says yes to every signature (EIP-1271). Its transactions are the chain's own doing."""
        self._is_contract = True
        self.ask("anvil_setCode", self.account.address, SAYS_YES)
        self.ask("anvil_impersonateAccount", self.account.address)

    def _send(self, given: dict[str, Any]) -> Any:
        if self.chain != self.own_chain:
            raise Refusal(4901, "on another chain")
        signer = self._signer(given["from"])
        if self._is_contract:
            self.sent.append(given)
            return self.ask("eth_sendTransaction", {key: given[key] for key in ("from", "to", "data", "gas")})
        block = self.ask("eth_getBlockByNumber", "latest", False)
        transaction = {
            "chainId": self.own_chain,
            "nonce": self.nonce(signer) + self.nonces_ahead,
            "to": given["to"],
            "data": given.get("data", "0x"),
            "value": int(given.get("value", "0x0"), 16),
            "gas": self.gas or int(given["gas"], 16),
            "maxPriorityFeePerGas": 10**9,
            "maxFeePerGas": 2 * int(block["baseFeePerGas"], 16) + 10**9,
        }
        self.sent.append(transaction)
        return self.send(transaction, signer)

    def nonce(self, signer: LocalAccount) -> int:
        return int(self.ask("eth_getTransactionCount", signer.address, "pending"), 16)

    def send(self, transaction: dict[str, Any], signer: LocalAccount | None = None) -> Any:
        signed = (signer or self.account).sign_transaction(transaction)
        return self.ask("eth_sendRawTransaction", signed.raw_transaction.to_0x_hex())


def hold(page: Page, *methods: str) -> None:
    """Until `let_go`, the wallet does not answer requests of these methods."""
    page.evaluate(
        """held => { window.testWalletHolds = (method) => held.includes(method)
            && new Promise((resolve) => { (window.testWalletHeld ??= []).push(resolve) }) }""",
        list(methods),
    )


def wait_held(page: Page) -> None:
    page.wait_for_function("() => (window.testWalletHeld ?? []).length > 0")


def let_go(page: Page, holds_on: bool = False) -> int:
    """The wallet gets the requests that were held, at least one, and their number is returned. `holds_on`: not those
    that follow.
    """
    wait_held(page)
    held: int = page.evaluate(
        """holdsOn => { const held = window.testWalletHeld ?? []
            if (!holdsOn) window.testWalletHolds = undefined
            window.testWalletHeld = []
            held.forEach((resolve) => resolve()); return held.length }""",
        holds_on,
    )
    return held


class Watched:
    """A page, and what went wrong in it: errors on its console, and requests to anywhere but where it may ask."""

    def __init__(self, page: Page, allowed: set[str]) -> None:
        self.page, self._allowed = page, allowed
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc not in self._allowed:
            self.elsewhere.append(request.url)


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def context_of(browser: Browser, theme: str = "light", width: int = 1280, height: int = 900) -> BrowserContext:
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if theme == "dark" else "light"
    )
    context.set_default_timeout(20_000)
    return context


def fresh_account() -> LocalAccount:
    account: LocalAccount = Account.create()
    return account
