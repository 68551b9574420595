"""Tokens, stakes and rewards: reads of the token and staking contracts, and an account's transactions there."""

from __future__ import annotations

from collections.abc import Sequence

from consilium_core.visible_text import shown
from web3.contract.contract import ContractFunction

from consilium_chain.errors import Refused
from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.structs import Role, Stake, Unbonding
from consilium_chain.rpc.outgoing import Receipt

LONGEST_SYMBOL = 12  # characters
NO_COMMISSION = 0  # of a node that registers by staking: it has no delegators yet, and may raise it
NOBODY = "0x" + "0" * 40


class Token:
    def __init__(self, contracts: Contracts) -> None:
        self._token = contracts.token

    def symbol(self) -> str:
        """In visible characters, 12 at most."""
        return shown(str(self._token.read("symbol")), LONGEST_SYMBOL)

    def balance(self, account: str, block: int | None = None) -> int:
        return int(self._token.read("balanceOf", account, block=block))

    def transfer(self, recipient: str, amount: int) -> Receipt:
        return self._token.send("transfer", recipient, amount)


class Staking:
    """`block`: as of that block, by default the latest. `payee`: the first withdrawal address that this account sets
    when it stakes, if it has none.
    """

    def __init__(self, contracts: Contracts, payee: str | None = None) -> None:
        self._contracts, self._staking, self._payee = contracts, contracts.staking, payee

    def total(self, block: int | None = None) -> int:
        return int(self._staking.read("totalStaked", block=block))

    def unbonding_period(self) -> int:
        """Seconds. The contract never changes it."""
        return int(self._staking.read("unbondingPeriod"))

    def stake_of(self, account: str, role: Role, block: int | None = None) -> Stake:
        return Stake.from_chain(self._staking.read("stakeOf", account, role, block=block))

    def pool(self, node: str, role: Role, block: int | None = None) -> dict[str, int]:
        """A node's pool of stake and rewards, by the ABI's names."""
        function = self._staking.function("poolOf", node, role)
        names = [component["name"] for component in function.abi["outputs"][0]["components"]]
        return dict(zip(names, self._contracts.connection.call(function, block), strict=True))

    def unvested(self, node: str, role: Role, block: int | None = None) -> int:
        """A node's unvested rewards, rounded down."""
        return self.pool(node, role, block)["unvestedX48"] >> 48

    def claimable(self, delegator: str, node: str, role: Role, block: int | None = None) -> int:
        """A delegator's vested rewards from a node; for its owner with the commission."""
        _, _, claimable = self._staking.read("positionOf", delegator, node, role, block=block)
        return int(claimable)

    def is_registered(self, node: str, role: Role) -> bool:
        return self.pool(node, role)["vestedAt"] != 0

    def commission(self, node: str, role: Role) -> int:
        """In basis points; an announced raise counts already."""
        pool = self.pool(node, role)
        return pool["nextCommissionBps" if pool["nextCommissionAt"] else "commissionBps"]

    def voter_key_hash(self, voter: str) -> bytes:
        """keccak256 of the registered public key, 32 bytes; zero if none is registered."""
        return bytes(self._staking.read("voterKeyHash", voter))

    def stake(self, role: Role, amount: int) -> None:
        """Makes this account a node of the role if it is not one, and brings its free stake up to `amount`."""
        self._contracts.connection.transactions.send_all(self.calls_to_stake(role, amount))

    def register(self, role: Role, more: int, commission_bps: int) -> None:
        """Makes this account a node of the role with this commission on its delegators' rewards, and stakes `more`.

        An existing node's commission changes: a lower one at once, a higher one after the unbonding period.
        """
        account = self._contracts.address
        calls = self._calls_for(role, more, commission_bps)
        if self.is_registered(account, role) and self.commission(account, role) != commission_bps:
            calls.append(self._staking.function("setCommission", role, commission_bps))
        self._contracts.connection.transactions.send_all(calls)

    def calls_to_stake(self, role: Role, amount: int) -> list[ContractFunction]:
        """The calls of `stake`."""
        missing = max(amount - self.stake_of(self._contracts.address, role).free, 0)
        return self._calls_for(role, missing, NO_COMMISSION)

    def _calls_for(self, role: Role, more: int, commission_bps: int) -> list[ContractFunction]:
        calls, account = [], self._contracts.address
        if more:
            calls.append(self._contracts.token.function("approve", self._contracts.deployment.staking, more))
        if not self.is_registered(account, role):
            calls.append(self._staking.function("register", role, commission_bps, more))
        elif more:
            calls.append(self._staking.function("delegate", account, role, more))
        if self._payee is not None and self._staking.read("withdrawalAddressOf", account, role)[0] == NOBODY:
            calls.append(self._staking.function("setWithdrawalAddress", account, role, self._payee))
        return calls

    def claim(self, role: Role) -> None:
        """Claims this node's vested rewards, if any."""
        account = self._contracts.address
        if self.claimable(account, account, role):
            self._staking.send("claim", account, role)

    def unstake(self, role: Role, amount: int) -> int:
        """Starts to unbond this much of the node's own stake (all of it if `amount` is more); returns its worth,
        rounded down to whole shares. That part earns nothing and backs no new bond from now on.
        """
        node = self._contracts.address
        shares, worth, _ = self._staking.read("positionOf", node, node, role)
        part = shares if amount >= worth else amount * shares // worth
        if not part:
            return 0
        self._staking.send("startUnbonding", node, role, part)
        return int(part * worth // shares)

    def unbondings(self, delegator: str) -> list[Unbonding]:
        """A delegator's open requests to unbond, oldest first."""
        found = []
        for number in range(self._staking.read("requestCount", delegator)):
            (node, role, matures_at, _, shares), amount = self._staking.read("requestOf", delegator, number)
            if shares:  # else it is withdrawn
                found.append(Unbonding(number, node, Role(role), matures_at, amount))
        return found

    def withdraw(self, requests: Sequence[int]) -> None:
        """Withdraws matured requests of this account, by their numbers."""
        self._contracts.connection.transactions.send_all([self._staking.function("withdraw", one) for one in requests])

    def release_bond(self, task: int, account: str) -> bool:
        """Unlocks an account's bonds of an ended task; False if nothing is left of them."""
        try:
            self._contracts.tasks.send("releaseBond", task, account)
        except Refused as error:
            if error.name == "NothingToRelease":
                return False
            raise
        return True
