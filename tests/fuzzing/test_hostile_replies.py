"""Whatever a hospital makes of a reply's objects, the aggregator gets a message or an error for it, and goes on."""

from __future__ import annotations

import contextlib

import pytest
from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.messages import ReplyCode
from consilium_server.aggregator.uploads import parse_reply
from consilium_server.errors import ReplyRefused
from consilium_zk.curve import GENERATOR
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from grid_driver import FakeRuntime, Grid
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import HOSTILE, TOKENS, bounded, bytes_like
from parsers import HOSPITAL, blob, signed_update, statement
from test_hostile_bytes import PLAIN

CODES = [*map(int, ReplyCode), 99, -1, 2**40, True, 0.5, "OK", b"0", [0], [b""]]


@pytest.fixture(autouse=True)
def in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower makes messages only in a process that has a task."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def upload() -> RecordDict:
    array = Array(dtype="uint8", shape=(len(blob()),), stype="raw", data=blob())
    status = ConfigRecord({"code": int(ReplyCode.OK), "body": GENERATOR + statement()})
    return RecordDict({"status": status, "blobs": ArrayRecord({"0": array})})


def signed() -> RecordDict:
    return RecordDict({"status": ConfigRecord({"code": int(ReplyCode.SIGNED), "body": signed_update()})})


def read(content: RecordDict) -> None:
    with contextlib.suppress(ReplyRefused, SignedUpdateMalformed):
        parse_reply(content, HOSPITAL.address, 1)


def try_objects(examples: int) -> None:
    kinds = {"upload": upload, "signed": signed}

    @given(st.sampled_from(sorted(kinds)), st.integers(0, 9), st.data())
    @settings(PLAIN, max_examples=examples)
    def run(kind: str, which: int, data: st.DataObject) -> None:
        runtime = FakeRuntime()
        runtime.announce_message("a", Message(kinds[kind](), dst_node_id=1, message_type="train"))()
        names = sorted(runtime.objects, key=lambda name: len(runtime.objects[name]))
        name = names[which % len(names)]
        content = data.draw(bytes_like([runtime.objects[name], *runtime.objects.values()]))
        runtime.objects[name] = content
        with bounded(192):
            (message,) = Grid(runtime).pull_messages(["a"])
            assert message.metadata.reply_to_message_id == "a"
            if not message.has_error():
                read(message.content)

    run()


VALUES = st.one_of(
    st.sampled_from([one for one in HOSTILE if isinstance(one, bool | float | str) or one in (0, 2**62)]),
    st.sampled_from(TOKENS),
    st.lists(st.integers(-5, 5), min_size=1),
    st.binary(max_size=300),
    st.just(signed_update()),
)
CONFIGS = st.dictionaries(st.sampled_from(["code", "body", "x", ""]), VALUES, max_size=3).flatmap(
    lambda fields: st.sampled_from(CODES).map(lambda code: fields | {"code": code})
)


def try_records(examples: int) -> None:
    arrays = st.builds(
        lambda dtype, shape, stype, data: Array(dtype=dtype, shape=shape, stype=stype, data=data),
        st.sampled_from(["uint8", "object", ""]),
        st.sampled_from([(131_072,), (), (2**40,), (-1,)]),
        st.sampled_from(["raw", "pickle"]),
        st.one_of(bytes_like([blob()]), st.just(blob())),
    )
    records = st.one_of(
        CONFIGS.map(ConfigRecord),
        st.dictionaries(st.sampled_from(["0", "1", "x"]), arrays, max_size=2).map(ArrayRecord),
        st.just(MetricRecord({"code": 0})),
    )

    @given(st.dictionaries(st.sampled_from(["status", "blobs", "x"]), records, max_size=3))
    @settings(PLAIN, max_examples=examples)
    def run(content: dict[str, ConfigRecord | ArrayRecord | MetricRecord]) -> None:
        with bounded(192):
            read(RecordDict(content))

    run()


def test_hostile_objects_are_a_message_or_an_error() -> None:
    try_objects(60)


def test_hostile_records_are_a_reply_or_refused_by_name() -> None:
    try_records(60)


@pytest.mark.deep
@pytest.mark.timeout(1_200)
def test_many_hostile_replies() -> None:
    try_objects(5_000)
    try_records(5_000)
