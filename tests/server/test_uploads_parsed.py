"""A hospital's reply is hostile until parsed, and a wrong sum leads to the right hospital."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from consilium_chain.errors import SignedUpdateMalformed
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.rounds.signed_updates import SignedUpdate, sign_update
from consilium_server.aggregator.collection import REST, TRIES, Collection
from consilium_server.aggregator.reply_store import ReplyStore
from consilium_server.aggregator.uploads import (
    Answer,
    Contribution,
    Signed,
    Upload,
    parse_reply,
    parse_upload,
    sum_cohort,
    sum_commitments,
    wrong_uploads,
)
from consilium_server.errors import ReplyRefused, SumMismatch
from consilium_zk.blobs import Blob, add, from_scalars, parse_blob, scale, to_scalars
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_BLOB
from consilium_zk.kzg import Commitment, commit
from eth_account import Account
from eth_utils.crypto import keccak
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.common.constant import ErrorCode
from flwr.supercore.task_identity import TaskIdentity
from raised_faults import raises_fault

PRIVATE = "Doe, Jane"


def blob(seed: int) -> Blob:
    random = np.random.default_rng(seed)
    return from_scalars([int.from_bytes(random.bytes(31), "big") for _ in range(4096)])


GOOD = blob(1)
POINT = commit(GOOD)


def raw(data: bytes = GOOD, dtype: str = "uint8", shape: tuple[int, ...] | None = None, stype: str = "raw") -> Array:
    return Array(dtype=dtype, shape=shape or (len(data),), stype=stype, data=data)


def reply(arrays: dict[str, Array] | None = None, **status: Any) -> RecordDict:
    count = 1 if arrays is None else len(arrays)
    fields = {"code": int(ReplyCode.OK), "body": b"".join([POINT] * count)} | status
    blobs = ArrayRecord({"0": raw()} if arrays is None else arrays)
    return RecordDict({"status": ConfigRecord(fields), "blobs": blobs})


def without(name: str) -> RecordDict:
    content = reply()
    del content[name]
    return content


def with_record(name: str, record: Any) -> RecordDict:
    content = reply()
    content[name] = record
    return content


def test_parse_upload_takes_what_the_round_asks_for() -> None:
    other = blob(2)
    assert parse_upload(reply(), 1).blobs == [GOOD]
    assert parse_upload(reply({"1": raw(other), "0": raw()}), 2) == Upload([GOOD, other], [POINT, POINT])
    stated = parse_upload(reply(body=POINT + b"a statement"), 1)
    assert (stated.points, stated.statement) == ([POINT], b"a statement")


def no_code() -> RecordDict:
    return with_record("status", ConfigRecord({"reason": "none"}))


HOSTILE: dict[str, Callable[[], RecordDict]] = {
    "nothing": RecordDict,
    "no status": lambda: without("status"),
    "no blobs": lambda: without("blobs"),
    "one more record": lambda: with_record("metrics", MetricRecord({"loss": 0.1})),
    "status of another kind": lambda: with_record("status", MetricRecord({"code": 0})),
    "status as arrays": lambda: with_record("status", ArrayRecord({})),
    "blobs of another kind": lambda: with_record("blobs", ConfigRecord({"0": GOOD})),
    "no code": no_code,
    "sat out": lambda: reply(code=int(ReplyCode.SAT_OUT)),
    "refused": lambda: reply(code=int(ReplyCode.REFUSED)),
    "failed": lambda: reply(code=int(ReplyCode.FAILED)),
    "unknown code": lambda: reply(code=99),
    "huge code": lambda: reply(code=2**62),
    "negative code": lambda: reply(code=-1),
    "code as text": lambda: reply(code=PRIVATE),
    "code as number in text": lambda: reply(code="0"),
    "code as bytes": lambda: reply(code=b"0"),
    "code as list": lambda: reply(code=[0]),
    "code as nan": lambda: reply(code=float("nan")),
    "no points": lambda: reply(body=b""),
    "a cut point": lambda: reply(body=POINT[:-1]),
    "points as text": lambda: reply(body=PRIVATE),
    "points as a list": lambda: reply(body=[POINT]),
    "a point off the curve": lambda: reply(body=b"\x80" + b"\xff" * 47),
    "a point of zeros": lambda: reply(body=bytes(48)),
    "the point at infinity": lambda: reply(body=b"\xc0" + bytes(47)),
    "infinity with something behind it": lambda: reply(body=b"\xc0" + bytes(46) + b"\x01"),
    "a point for one of two blobs": lambda: reply({"0": raw(), "1": raw()}, body=POINT),
    "no array": lambda: reply({}),
    "two arrays": lambda: reply({"0": raw(), "1": raw()}),
    "array of another name": lambda: reply({"1": raw()}),
    "array of a private name": lambda: reply({PRIVATE: raw()}),
    "array of a padded name": lambda: reply({"00": raw()}),
    "array of a negative name": lambda: reply({"-1": raw()}),
    "another dtype": lambda: reply({"0": raw(dtype="float32")}),
    "private dtype": lambda: reply({"0": raw(dtype=PRIVATE)}),
    "objects": lambda: reply({"0": raw(dtype="object")}),
    "another serialisation": lambda: reply({"0": raw(stype="numpy.ndarray")}),
    "pickle": lambda: reply({"0": raw(stype="pickle")}),
    "broadcast shape": lambda: reply({"0": raw(shape=(1, BYTES_PER_BLOB))}),
    "scalar shape": lambda: reply({"0": raw(shape=(1,))}),
    "huge shape": lambda: reply({"0": raw(shape=(2**40,))}),
    "negative shape": lambda: reply({"0": raw(shape=(-BYTES_PER_BLOB,))}),
    "short data": lambda: reply({"0": raw(GOOD[:-1])}),
    "short data under a right shape": lambda: reply({"0": raw(GOOD[:-1], shape=(BYTES_PER_BLOB,))}),
    "long data under a right shape": lambda: reply({"0": raw(GOOD + b"\0", shape=(BYTES_PER_BLOB,))}),
    "no data": lambda: reply({"0": raw(b"", shape=(BYTES_PER_BLOB,))}),
    "scalar equal to the modulus": lambda: reply({"0": raw(BLS_MODULUS.to_bytes(32, "big") + GOOD[32:])}),
    "last scalar above the modulus": lambda: reply({"0": raw(GOOD[:-32] + b"\xff" * 32)}),
}


@pytest.mark.parametrize("case", sorted(HOSTILE))
def test_parse_upload_refuses(case: str) -> None:
    with pytest.raises(ReplyRefused) as caught:
        parse_upload(HOSTILE[case](), 1)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("code", [True, False])
def test_parse_upload_takes_booleans_for_the_integers_they_are(code: bool) -> None:
    if code:
        with raises_fault(ReplyRefused, "UploadInvalid", match="SAT_OUT"):
            parse_upload(reply(code=code), 1)
    else:
        assert parse_upload(reply(code=code), 1).blobs == [GOOD]


def test_parse_upload_refuses_fewer_blobs_than_the_round_has() -> None:
    with raises_fault(ReplyRefused, "UploadInvalid", match="1 blobs instead of 2"):
        parse_upload(reply(), 2)


def contribution(seed: int, weight: int, sent: Blob | None = None, blobs: int = 1) -> Contribution:
    """An honest contribution, or one with `sent` as its first blob."""
    own = [blob(seed + 100 * place) for place in range(blobs)]
    points: list[Commitment] = [commit(one) for one in own]
    weighted = [scale(one, weight) for one in own]
    return Contribution(Upload([sent or weighted[0], *weighted[1:]], points), weight)


FACTORS = [2**127 + 12_345, 3]


def test_sum_cohort_is_the_exact_weighted_sum() -> None:
    parts = [contribution(1, 3, blobs=2), contribution(2, 11, blobs=2)]
    sums = sum_cohort(0, parts, FACTORS).blobs
    for place, total in enumerate(sums):
        one, other = to_scalars(blob(1 + 100 * place)), to_scalars(blob(2 + 100 * place))
        assert to_scalars(total) == [(3 * a + 11 * b) % BLS_MODULUS for a, b in zip(one, other, strict=True)]
    assert wrong_uploads({4: parts[0], 9: parts[1]}) == []


@pytest.mark.parametrize(
    "sent",
    [
        blob(77),
        GOOD,  # unweighted
        scale(GOOD, 5),  # a weight of its own choice
        Blob(bytes(BYTES_PER_BLOB)),
    ],
    ids=["another blob", "unweighted", "another weight", "zeros"],
)
def test_wrong_uploads_names_exactly_who_sent_something_else(sent: Blob) -> None:
    parts = {2: contribution(3, 2), 5: contribution(1, 4, sent=sent), 7: contribution(4, 1)}
    with pytest.raises(SumMismatch, match="cohort 6, blob 0"):
        sum_cohort(6, list(parts.values()), FACTORS[:1])
    assert wrong_uploads(parts) == [5]
    del parts[5]
    assert sum_cohort(6, list(parts.values()), FACTORS[:1]).blobs == [add([c.upload.blobs[0] for c in parts.values()])]


def shifted(part: Contribution, shift: Blob, factor: int = 1) -> Contribution:
    """`part`, with an upload that differs by `factor` times `shift`."""
    return replace(part, upload=replace(part.upload, blobs=[add([part.upload.blobs[0], scale(shift, factor)])]))


def test_sum_cohort_of_shifts_that_cancel_is_the_committed_sum() -> None:
    """There is no reason to refuse them: the publication does not depend on the shifts."""
    honest = [contribution(1, 3), contribution(2, 11), contribution(3, 1)]
    shift = blob(50)
    moved = [shifted(honest[0], shift), shifted(honest[1], shift, -1), honest[2]]
    (published,) = sum_cohort(0, moved, FACTORS[:1]).blobs
    committed = [to_scalars(blob(seed)) for seed in (1, 2, 3)]
    assert to_scalars(published) == [(3 * a + 11 * b + c) % BLS_MODULUS for a, b, c in zip(*committed, strict=True)]
    assert commit(published) == sum_commitments(honest)[0]


def test_sum_cohort_refuses_shifts_that_cancel_across_cohorts_and_all_who_shifted_are_named() -> None:
    shift = blob(50)
    parts = {0: shifted(contribution(1, 3), shift), 1: shifted(contribution(2, 11), shift, -1), 2: contribution(3, 1)}
    for cohort in ([0, 2], [1, 2]):
        with pytest.raises(SumMismatch):
            sum_cohort(0, [parts[index] for index in cohort], FACTORS[:1])
    assert wrong_uploads(parts) == [0, 1]


# Signed updates

HOSPITAL = Account.from_key(b"\x07" * 32)
ADDRESSES = [HOSPITAL.address] * 5


def signed(seed: int = 1, round_: int = 0) -> SignedUpdate:
    contract = Account.from_key(b"\x01" * 32).address
    return sign_update(HOSPITAL, 31_337, contract, 1, round_, [keccak(bytes([seed]))])


def signed_reply(update: object, **more: Any) -> RecordDict:
    fields: dict[str, Any] = {"code": int(ReplyCode.SIGNED), "body": update}
    return RecordDict({"status": ConfigRecord(fields | more)})


UPDATE = signed()
SIGNED = Signed(UPDATE, b"")


def test_parse_reply_takes_a_signed_update_of_whoever_sent_it() -> None:
    assert parse_reply(signed_reply(UPDATE.to_wire()), HOSPITAL.address, 1) == Signed(UPDATE, b"")
    other = Account.from_key(b"\x09" * 32).address
    parsed = parse_reply(signed_reply(UPDATE.to_wire()), other, 1)
    assert parsed == Signed(replace(UPDATE, hospital=other), b"")  # and so without a signature that holds


def with_blobs() -> RecordDict:
    content = signed_reply(UPDATE.to_wire())
    content["blobs"] = ArrayRecord({"0": raw()})
    return content


WRONG_UPDATES: dict[str, Callable[[], RecordDict]] = {
    "none": lambda: RecordDict({"status": ConfigRecord({"code": int(ReplyCode.SIGNED)})}),
    "blobs beside it": with_blobs,
    "words beside it": lambda: signed_reply(UPDATE.to_wire(), reason=PRIVATE),
    "text": lambda: signed_reply(PRIVATE),
    "a list": lambda: signed_reply([UPDATE.to_wire()]),
    "nothing": lambda: signed_reply(b""),
    "one byte too few": lambda: signed_reply(UPDATE.to_wire()[:-1]),
    "one byte too many": lambda: signed_reply(UPDATE.to_wire() + b"\0"),
    "a second blob's hash": lambda: signed_reply(UPDATE.to_wire() + UPDATE.to_wire()[-32:]),
}


@pytest.mark.parametrize("case", sorted(WRONG_UPDATES))
def test_parse_reply_refuses_what_is_no_signed_update(case: str) -> None:
    with pytest.raises(SignedUpdateMalformed) as caught:
        parse_reply(WRONG_UPDATES[case](), HOSPITAL.address, 1)
    assert PRIVATE not in str(caught.value)


def test_parse_reply_refuses_another_blob_count() -> None:
    with pytest.raises(SignedUpdateMalformed, match="160 bytes instead of 192 for 2 blobs"):
        parse_reply(signed_reply(UPDATE.to_wire()), HOSPITAL.address, 2)


def test_parse_reply_takes_the_share_bundle_that_the_signed_update_names_and_no_other() -> None:
    made = sign_update(HOSPITAL, 31_337, HOSPITAL.address, 1, 0, [keccak(POINT)], keccak(b"a share bundle"))
    parsed = parse_reply(signed_reply(made.to_wire() + b"a share bundle"), HOSPITAL.address, 1)
    assert parsed == Signed(made, b"a share bundle")
    for other in (b"", b"another one"):
        with pytest.raises(SignedUpdateMalformed, match="its secret shares do not match"):
            parse_reply(signed_reply(made.to_wire() + other), HOSPITAL.address, 1)


def test_parse_reply_takes_an_answer_as_it_is() -> None:
    content = RecordDict({"status": ConfigRecord({"code": int(ReplyCode.ANSWERED), "body": b"\xff" * 96})})
    assert parse_reply(content, HOSPITAL.address, 1) == Answer(b"\xff" * 96)


# Collection

NEVER = "never"
ERROR = "error"
AWAY = "away"  # what Flower answers for a node that has left
CODES = {ERROR: ErrorCode.LOAD_CLIENT_APP_EXCEPTION, AWAY: ErrorCode.NODE_UNAVAILABLE}
Scripted: TypeAlias = RecordDict | str


class FakeGrid:
    """The part of Flower's grid that `Collection` uses: each node gives its prepared answers in turn."""

    def __init__(self, answers: dict[int, list[Scripted]]) -> None:
        self.answers = answers
        self.offline: set[int] = set()
        self.pushed: list[int] = []
        self.parts: list[object] = []

    def get_node_ids(self) -> list[int]:
        return [node for node in self.answers if node not in self.offline]

    def push_messages(self, messages: list[Message]) -> list[str]:
        identifiers = []
        for message in messages:
            identifiers.append(f"{message.metadata.dst_node_id}/{len(self.pushed)}")
            self.pushed.append(message.metadata.dst_node_id)
            self.parts.append(message.content.config_records["request"]["part"])
        return identifiers

    def pull_messages(self, identifiers: list[str]) -> list[Message]:
        replies = []
        for identifier in identifiers:
            script = self.answers[int(identifier.split("/")[0])]
            if script and script[0] != NEVER:
                replies.append(replying(identifier, script.pop(0)))
        return replies


def replying(identifier: str, content: Scripted) -> Message:
    made = Message(RecordDict() if isinstance(content, str) else content, dst_node_id=1, message_type="train")
    if isinstance(content, str):
        made.__dict__["_content"], made.__dict__["_error"] = None, Error(code=CODES[content], reason=PRIVATE)
    made.metadata.__dict__["_reply_to_message_id"] = identifier
    return made


@pytest.fixture
def in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower makes messages only in a process with a task."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def collected(
    answers: dict[int, list[Scripted]],
    masked: bool = False,
    kept: ReplyStore | None = None,
    clock: Callable[[], float] = lambda: 0.0,
) -> tuple[Collection, FakeGrid]:
    """Nodes 10, 11, … are hospitals 0, 1, …; all get requests."""
    grid = FakeGrid(answers)
    nodes = {index: 10 + index for index in range(5)}
    collection = Collection(grid, nodes, ADDRESSES, bytes(20), 1, 0, 1, masked, kept, clock)  # type: ignore[arg-type]
    collection.ask(0b11111)
    return collection, grid


def ok() -> RecordDict:
    return signed_reply(UPDATE.to_wire())


@pytest.mark.usefixtures("in_a_run")
def test_collection_asks_for_one_part_after_the_other() -> None:
    collection, grid = collected({10: [ok(), reply()], 11: [ok(), NEVER]})
    assert (grid.pushed, grid.parts) == ([10, 11], [Part.SIGNED] * 2)
    collection.receive()
    assert collection.signed == {0: SIGNED, 1: SIGNED}
    assert (grid.pushed[2:], grid.parts[2:]) == ([10, 11], [Part.UPLOAD] * 2)
    assert (collection.arrived, collection.finished) == (0, 0)
    collection.receive()
    assert (collection.arrived, collection.finished) == (0b01, 0b01)
    assert len(grid.pushed) == 4  # nobody is asked again who still owes an answer or gave all


@pytest.mark.usefixtures("in_a_run")
def test_collection_keeps_the_good_and_names_the_bad(capsys: pytest.CaptureFixture[str]) -> None:
    bad = [reply(code=PRIVATE) for _ in range(4)]
    collection, grid = collected({10: [ok(), reply()], 11: list(bad), 12: [NEVER], 14: [ERROR] * 4})
    assert not collection.ask(0b11111)  # node 13 is not online
    collection.receive()
    assert (collection.arrived, collection.finished) == (0, 0)
    collection.receive()
    assert (collection.arrived, collection.finished) == (0b00001, 0b10011)
    assert PRIVATE not in capsys.readouterr().out
    # What did not come was asked for once more, for the node may have been starting anew; and nothing else was.
    assert sorted(grid.pushed) == [10, 10, 11, 11, 12, 14, 14]
    assert not collection.ask(0b11111)
    assert collection.ask(0b10111)
    assert len(grid.pushed) == 7


@pytest.mark.usefixtures("in_a_run")
def test_collection_asks_a_node_that_started_anew_once_more() -> None:
    """The first request was lost with the old process."""
    collection, _ = collected({10: [ERROR, ok(), reply()]})
    collection.receive()
    assert (collection.signed, collection.finished) == ({}, 0)
    collection.receive()
    assert (collection.signed, collection.arrived) == ({0: SIGNED}, 0)
    collection.receive()
    assert (collection.arrived, collection.finished) == (1, 1)


@pytest.mark.usefixtures("in_a_run")
def test_collection_waits_for_a_node_that_has_left_and_asks_it_once_it_is_back() -> None:
    """A restart, however often, leaves a hospital as much time for its upload as any other."""
    collection, grid = collected({10: [ok(), *[AWAY] * 4, reply()], 11: [ok(), reply()]})
    collection.receive()
    grid.offline.add(10)
    collection.receive()
    assert (collection.arrived, collection.finished) == (0b10, 0b10)
    assert not collection.ask(0b11)
    asked = len(grid.pushed)
    collection.receive()
    assert len(grid.pushed) == asked  # nothing is sent to who is not there
    for _ in range(4):
        grid.offline.clear()
        assert collection.ask(0b11)
        assert collection.finished == 0b10
        grid.offline.add(10)
        collection.receive()
    assert (collection.arrived, collection.finished) == (0b11, 0b11)


@pytest.mark.usefixtures("in_a_run")
def test_collection_asks_who_committed_by_itself_for_its_upload() -> None:
    collection, grid = collected({10: [ERROR, ERROR, reply()]})
    for _ in range(2):
        collection.receive()
    assert (collection.signed, collection.finished) == ({}, 1)
    assert collection.ask(1)
    assert len(grid.pushed) == 2
    assert collection.ask(1, committed=1)
    assert grid.parts[2:] == [Part.UPLOAD]
    collection.receive()
    assert (collection.arrived, collection.finished) == (1, 1)


@pytest.mark.usefixtures("in_a_run")
def test_collection_of_a_masked_round_asks_for_an_answer_once_it_has_the_upload() -> None:
    answer = RecordDict({"status": ConfigRecord({"code": int(ReplyCode.ANSWERED), "body": bytes(96)})})
    collection, grid = collected({10: [ok(), ERROR, reply(), answer]}, masked=True)
    for _ in range(4):
        collection.receive()
    assert grid.parts == [Part.SIGNED, Part.UPLOAD, Part.UPLOAD, Part.ANSWER]
    assert (collection.arrived, collection.answers, collection.finished) == (1, {0: Answer(bytes(96))}, 1)


@pytest.mark.usefixtures("in_a_run")
@pytest.mark.parametrize("failed", [ERROR, reply(code=int(ReplyCode.FAILED))], ids=["flower", "hospital"])
def test_collection_asks_who_has_committed_and_fails_until_it_does_not(failed: Scripted) -> None:
    """A full disk is not a refusal, and a withheld upload costs money."""
    now = 0.0
    collection, grid = collected({10: [ok(), *[failed] * (TRIES + 2), reply()]}, clock=lambda: now)
    for _ in range(1 + TRIES):
        collection.receive()
    for more in range(3):
        for _ in range(2):
            collection.receive()
            collection.ask(1, committed=1)
        assert (len(grid.pushed), collection.arrived, collection.finished) == (1 + TRIES + more, 0, 0)
        now += REST
        collection.ask(1, committed=1)
    collection.receive()
    assert (collection.arrived, collection.finished) == (1, 1)


@pytest.mark.usefixtures("in_a_run")
def test_collection_asks_who_says_no_twice_and_waits_for_nothing() -> None:
    """The same holds for a hospital that fails to sign, because that costs nothing."""
    refusing = [reply(code=int(ReplyCode.SAT_OUT)) for _ in range(TRIES)]
    failing = [reply(code=int(ReplyCode.FAILED)) for _ in range(TRIES)]
    collection, _ = collected({10: [ok(), *refusing], 11: failing})
    for _ in range(1 + TRIES):
        collection.receive()
    assert collection.finished == 0b11


@pytest.mark.usefixtures("in_a_run")
def test_collection_keeps_the_first_of_two_different_updates(capsys: pytest.CaptureFixture[str]) -> None:
    other = signed_reply(signed(seed=2).to_wire())
    collection, _ = collected({10: [ok(), other, reply()]})
    for _ in range(2):
        collection.receive()
    assert collection.signed == {0: SIGNED}
    assert str(ReplyRefused("SecondReply", what="signed update")) in capsys.readouterr().out
    collection.receive()
    assert (collection.arrived, collection.finished) == (1, 1)


# What is kept


@pytest.mark.usefixtures("in_a_run")
def test_collection_that_is_begun_anew_asks_for_nothing_that_is_on_disk(tmp_path: Path) -> None:
    before, _ = collected({10: [ok(), reply()], 11: [ok(), NEVER]}, kept=ReplyStore(tmp_path, 0))
    for _ in range(2):
        before.receive()
    after, grid = collected({10: [], 11: []}, kept=ReplyStore(tmp_path, 0))
    assert (after.signed, after.uploads) == (before.signed, before.uploads)
    assert (set(after.signed), after.arrived) == ({0, 1}, 0b01)
    assert (grid.pushed, grid.parts) == ([11], [Part.UPLOAD])


def test_kept_replies_come_back_as_they_were_and_those_before_the_last_round_go(tmp_path: Path) -> None:
    blob = parse_blob(bytes(BYTES_PER_BLOB))
    upload = Upload([blob, blob], [POINT, POINT], b"statement")
    ReplyStore(tmp_path, 3).keep(1, upload)
    ReplyStore(tmp_path, 3).keep(0, SIGNED)
    kept = ReplyStore(tmp_path, 3)
    assert (kept.signed(ADDRESSES, 1), kept.uploads(5, 2)) == ({0: SIGNED}, {1: upload})
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    ReplyStore(tmp_path, 4)
    assert ReplyStore(tmp_path, 3).uploads(5, 2) == {1: upload}  # where a reorganisation leads back
    ReplyStore(tmp_path, 4)
    ReplyStore(tmp_path, 5)
    assert {path.name for path in tmp_path.iterdir()} == {"round-4", "round-5"}


@pytest.mark.parametrize("what", ["signed-0", "upload-0"])
def test_kept_reply_that_is_damaged_is_told_and_asked_for_anew(
    tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ReplyStore(tmp_path, 0)
    kept.keep(0, SIGNED)
    kept.keep(0, Upload([parse_blob(bytes(BYTES_PER_BLOB))], [POINT]))
    path = tmp_path / "round-0" / what
    for damaged in (path.read_bytes()[:-1], b"", b"\xff" * 40):
        path.write_bytes(damaged)
        found = kept.signed(ADDRESSES, 1) if what == "signed-0" else kept.uploads(5, 1)
        assert found == {}
        assert '"reply-damaged"' in capsys.readouterr().out


@pytest.mark.usefixtures("in_a_run")
def test_collection_gives_up_who_signs_for_ever_and_never_uploads(capsys: pytest.CaptureFixture[str]) -> None:
    collection, grid = collected({10: [ok() for _ in range(10)]})
    for _ in range(4):
        collection.receive()
    assert (len(grid.pushed), collection.arrived, collection.finished) == (3, 0, 1)
