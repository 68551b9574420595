"""Models of sales in the API's answers (see `schemas`)."""

from __future__ import annotations

from typing import Literal

from consilium_chain.tasks.sale_spec import SaleSpec
from pydantic import Field

from consilium_server.api.schemas import Account, Amount, ApiModel, Millionths, PhaseName, TaskNumber, Time
from consilium_server.api.task_schemas import Asked

MOST_OFFERS = 20  # of a model


class Offer(ApiModel):
    """A server's latest offer. Clients need not trust it: each prediction has a signed receipt."""

    server: Account
    price: Amount = Field(description="price of one prediction")
    url: str = Field(description="the service's http or https address in ASCII; empty if the offer has another")
    since: Time


class SoldModel(ApiModel):
    task: TaskNumber
    name: str | None = Field(description="name in the task file; null if the file is unknown or invalid")
    asked: Asked | None = Field(description="null if the file is unknown or invalid")
    operator: Account
    phase: PhaseName
    terms: SaleSpec | None = Field(
        description="percentages of each payment as the contract or the task file has them; null if it cannot be sold"
    )
    is_shown: bool = Field(description="true once the contract knows these terms")
    is_minted: bool = Field(description="true once its parts are minted, so that it can be sold")
    hospitals: int = Field(description="hospitals that joined")
    gain: Millionths | None = Field(
        description="improvement that voters measured, as an ensemble's contract counts it; null before a round"
    )
    epsilon: float | None = Field(description="the most privacy that the task may cost a row; null without a budget")
    offers: list[Offer] = Field(description=f"offers in effect, the cheapest first; {MOST_OFFERS} at most")
    offers_in_all: int
    sold: Amount = Field(
        description="all that buyers paid and servers took, servers' fees included, with its parts of ensembles' sales"
    )
    paid: Amount = Field(description="all that was ever paid to the holders of its parts")
    sales: int = Field(description="transactions that took buyers' payments, of ensembles with this model, too")
    predictions: int = Field(
        description="predictions sold: each payment by its server's price at that time, without those of ensembles"
    )


class Holding(ApiModel):
    """`holder` has the parts. A node's are its pool's: `account` is then the node, else the holder itself."""

    holder: Account
    account: Account
    role: Literal["operator", "hospital", "voter", "other"]
    parts: Amount = Field(description="parts of the model, of 2^64")
    share: Millionths = Field(description="its parts as a share of all, rounded down")
    earned: Amount = Field(description="all that its parts earned, rounded down")
    claimed: Amount
    claimable: Amount


class SoldDay(ApiModel):
    day: Time = Field(description="beginning of the day in UTC")
    sold: Amount = Field(description="all sales until the day's end")
    predictions: int = Field(description="predictions sold until the day's end")


class SaleDay(SoldDay):
    paid: Amount = Field(description="all payments to holders until the day's end")


class ModelSales(SoldModel):
    buyers: int = Field(description="accounts that made a deposit")
    holdings: list[Holding] = Field(description="holders who have or had parts, by their earnings")
    days: list[SaleDay] = Field(description="days with a payment, the earliest first")


class EnsembleMember(ApiModel):
    task: TaskNumber
    name: str | None = Field(description="name in the task file; null if the file is unknown or invalid")
    gain: Amount = Field(description="improvement that voters measured in all rounds, in exact millionths")
    weight: Millionths = Field(description="its gain as a share of all members', rounded down")


class Ensemble(ApiModel):
    """Its members' models answer together. Each member's parties are paid by its own terms, by its weight."""

    number: TaskNumber = Field(description="number in offers, channels and receipts, like a task's; above 2^48")
    members: list[EnsembleMember] = Field(description="2 to 16, by task")
    asked: Asked | None = Field(description="of the first member; null if its file is unknown or invalid")
    formed_at: Time
    offers: list[Offer] = Field(description=f"offers in effect, the cheapest first; {MOST_OFFERS} at most")
    offers_in_all: int
    sold: Amount = Field(description="all that buyers paid and servers took, servers' fees included")
    sales: int = Field(description="transactions that took buyers' payments")
    predictions: int = Field(description="predictions sold: each payment by its server's price at that time")
    buyers: int = Field(description="accounts that made a deposit")


class EnsembleSales(Ensemble):
    days: list[SoldDay] = Field(description="days with a payment, the earliest first; holders are paid by member")
