"""The ClientApp that a hospital runs instead of the server's bundle: it passes bytes to the node and back."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from consilium_chain.messages import Part, ReplyCode
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from consilium_client.errors import FrameError
from consilium_client.relay.wire import (
    SOCKET_VARIABLE,
    RoundReply,
    RoundRequest,
    receive_reply,
    send_request,
    socket_address,
)

app = ClientApp()


@app.train()  # type: ignore[untyped-decorator]
def train(message: Message, context: Context) -> Message:
    reply = _ask_node(message)
    status = ConfigRecord({"code": int(reply.code)})
    if reply.body:
        status["body"] = reply.body
    if reply.body and not reply.blobs:  # one record: each is a request of its own on the way to the server
        return Message(RecordDict({"status": status}), reply_to=message)
    arrays = {
        str(index): Array(dtype="uint8", shape=(len(blob),), stype="raw", data=blob)
        for index, blob in enumerate(reply.blobs)
    }
    return Message(RecordDict({"status": status, "blobs": ArrayRecord(arrays)}), reply_to=message)


def _ask_node(message: Message) -> RoundReply:
    """Every error here leaves as a code, because Flower would send an exception's text to the server."""
    try:
        fields = message.content["request"]
        contract = fields["contract"]
        if not isinstance(contract, bytes):  # of a number, bytes() makes as many zeros
            raise TypeError
        request = RoundRequest(contract, int(fields["task"]), int(fields["round"]), Part(fields["part"]))
        with socket.socket(socket.AF_UNIX) as connection:
            with socket_address(Path(os.environ[SOCKET_VARIABLE])) as address:
                connection.connect(address)
            send_request(connection, request)
            return receive_reply(connection)
    except (KeyError, TypeError, ValueError, OverflowError, OSError, FrameError):
        return RoundReply(ReplyCode.FAILED)
