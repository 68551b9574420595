"""The contracts as typed calls: reads, events, and transactions of one account."""

from __future__ import annotations

from collections.abc import Sequence

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.networks import confirmations_of
from consilium_chain.errors import DeploymentInvalid
from consilium_chain.ledger.aggregator import AggregatorCalls
from consilium_chain.ledger.channels import Channels
from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.ensembles import Ensembles
from consilium_chain.ledger.events import ContractEvents
from consilium_chain.ledger.messages import Messages
from consilium_chain.ledger.record import Record
from consilium_chain.ledger.roles import HospitalCalls, OperatorCalls, PhaseCalls, VoterCalls
from consilium_chain.ledger.shares import ModelShares
from consilium_chain.ledger.snapshots import Snapshots
from consilium_chain.ledger.staking import Staking, Token
from consilium_chain.ledger.tasks import Tasks
from consilium_chain.ledger.votes import Votes
from consilium_chain.ledger.withdrawal import WithdrawalAddresses
from consilium_chain.rounds.beacons import open_beacon
from consilium_chain.rounds.drand_relays import QUICKNET_RELAYS
from consilium_chain.rpc.connection import Connection
from consilium_chain.tasks.chain_terms import ChainTerms


class Ledger:
    """The contract client of one account, or of a reader if the connection has no account.

    `tasks` and `token` read, `snapshots` follow tasks, `staking` reads and stakes, `shares` has the parts of finished
    models, `ensembles` the sets of them that are sold as one, `channels` buyers' deposits and payments, `withdrawal`
    has the accounts that are paid, `record`, `votes` and `logs` read events, `messages` are for signing, and
    `operator`, `hospital`, `voter`, `aggregator` and `phases` send transactions.
    """

    def __init__(
        self,
        connection: Connection,
        deployment: Deployment,
        drand_relays: Sequence[str] = QUICKNET_RELAYS,
        payee: str | None = None,
    ) -> None:
        """`payee`: of what this account stakes, as in `Staking`."""
        if connection.chain_id != deployment.chain_id:
            raise DeploymentInvalid(
                f"the address book is of chain {deployment.chain_id}, but {connection.shown_url} is on chain"
                f" {connection.chain_id}; pass the address book or the URL that matches"
            )
        connection.endpoint.require_contracts((deployment.tasks, deployment.staking))
        self.connection, self.deployment = connection, deployment
        self.contracts = contracts = Contracts(connection, deployment)
        self._beacon = open_beacon(connection, deployment, drand_relays)
        self.messages = Messages(connection, deployment)
        self.tasks, self.token, self.staking = Tasks(contracts), Token(contracts), Staking(contracts, payee)
        self.shares, self.channels, self.ensembles = ModelShares(contracts), Channels(contracts), Ensembles(contracts)
        self.withdrawal = WithdrawalAddresses(contracts, self.staking)
        self.snapshots = Snapshots(contracts, self.tasks)
        self.logs = ContractEvents(contracts)
        self.record, self.votes = Record(contracts, self.logs, self.tasks), Votes(self.logs)
        self.operator = OperatorCalls(contracts)
        self.hospital = HospitalCalls(contracts, self.messages, self.staking)
        self.voter = VoterCalls(contracts, self.messages)
        self.aggregator = AggregatorCalls(contracts, self.tasks, self.staking)
        self.phases = PhaseCalls(contracts, self._beacon)

    @property
    def address(self) -> str:
        """This account's."""
        return self.contracts.address

    def folder_name(self, task: int) -> str:
        """As `Deployment.folder_name`."""
        return self.deployment.folder_name(task)

    def chain_terms(self) -> ChainTerms:
        """The present costs of gas, blobs and time on this chain."""
        connection, deployment = self.connection, self.deployment
        block_seconds = connection.blocks.seconds()
        return ChainTerms(
            gas_price=connection.fees.present(),
            blob_gas_price=connection.fees.blob() if deployment.blobs else 0,
            block_seconds=block_seconds,
            beacon_seconds=self._beacon.wait(block_seconds),
            takes_blobs=deployment.blobs,
            has_drand=deployment.beacon_kind == "DrandBeacon",
            confirmations=confirmations_of(deployment.chain_id),
        )
