"""Errors of sales."""

from __future__ import annotations

from typing import ClassVar

from consilium_core.faults import FaultError


class PaymentRefused(FaultError):
    """A payment for predictions is not taken. The HTTP status is 402, and nothing was charged."""

    MESSAGES: ClassVar = {
        "PaymentMissing": "these predictions cost {price} of the token's smallest unit: pay by one of `accepts`",
        "PaymentMalformed": "the header PAYMENT-SIGNATURE cannot be read: {why}",
        "PaymentForeign": "the payment is for {what}: ask GET / for this server's terms",
        "VoucherForged": "the voucher is not signed by {buyer} for this server, task, contract and chain",
        "VoucherExpires": "the voucher expires at {expires_at}: sign one that is good until {least} at least",
        "VoucherSpent": (
            "vouchers up to {sold} were taken from {buyer} already, the last for other rows: sign {sold} plus the price"
        ),
        "AmountWrong": "the voucher states {amount}, and with these rows {wanted} is owed: sign exactly that",
        "DepositTooSmall": "the channel of {buyer} has {deposited}, and the voucher states {amount}: deposit more",
        "ChannelClosing": "the channel of {buyer} closes: deposit into it again to keep it open",
        "AuthorizationWrong": "the authorization is not for {wanted}: sign a transfer of exactly the price to the till",
        "AuthorizationForged": "the authorization is not signed by {payer} for this token and chain",
        "AuthorizationExpires": "the authorization is not valid for the next {seconds} seconds: sign another",
        "AuthorizationUsed": "the authorization is used or cancelled: sign another with a new nonce",
        "TransferFailed": "the chain refuses the transfer ({why}): check the signature and the balance",
        "TransferSmall": (
            "these predictions cost less than {least}, too little for a transaction: pay by a voucher, or ask for more"
        ),
        "DepositSmall": "a deposit that this server sends must be {least} at least: deposit more, or send it yourself",
    }


class SaleError(FaultError):
    """A model cannot be served, bought, or checked."""

    MESSAGES: ClassVar = {
        "ModelOfAnotherTask": "{path} has the model of task {found} of chain {chain}: pass the one of task {task}",
        "ModelNotVerified": "checks of this model failed, so it cannot be sold: download it again",
        "PartsNotMinted": "the parts of task {task} are not minted: run `consilium shares mint {task}` first",
        "AmountMalformed": "{text!r} is not an amount of tokens such as 0.01 ({why}): pass another",
        "PriceIsZero": "the price is zero: pass an amount of tokens such as 0.01",
        "NotBought": "nothing was bought: answer y, or pass --yes if nobody can answer",
        "RowsUnreadable": '{path}: {why}; pass a CSV file with a column name in each, or JSON {{"rows": […]}}',
        "CertificateMissing": (
            "others reach {host}, and patients' data must be encrypted: pass --certificate and --key, or listen on"
            " 127.0.0.1 behind a proxy"
        ),
        "BookOfAnother": "{path} has the sales of another task, server or contract: pass another --book",
        "UrlNotEncrypted": "{url} is not https://, and rows are patients' data: ask the server's operator for its URL",
        "ServerUnreachable": "no answer from {url} ({why}): check the URL, and try again: nothing is charged twice",
        "ServerMalformed": "{url} is not a server of predictions ({why}): ask its operator for the URL",
        "ServerRefused": "the server refuses: {why}",
        "BookLies": "the server claims that {sold} is owed, without a voucher of this account: do not buy there",
        "ReceiptMalformed": "{path} is not a receipt of predictions ({why})",
        "ReceiptWrong": "the answer does not match its receipt ({failed}): keep it as evidence, and do not buy there",
    }
