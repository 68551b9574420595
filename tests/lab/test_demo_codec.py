"""The demo's option for a codec, and what it says of nonsense."""

from __future__ import annotations

from pathlib import Path

import pytest
from consilium_chain.errors import SpecInvalid
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.options import DemoOptions, check, parse_codec
from consilium_lab.demo.task_file import TaskSettings, task_spec


@pytest.mark.parametrize(("text", "numbers"), [("hash:25", 25), ("sketch:5", 15)])
def test_a_codec_is_the_task_files(text: str, numbers: int) -> None:
    spec = task_spec(deal_wdbc(3, 2, 0), TaskSettings(codec=parse_codec(text)))
    assert (spec.update.codec.name, spec.coordinates) == (text.split(":")[0], numbers)


@pytest.mark.parametrize("text", ["zip:3", "hash", "hash:", "hash:-1", "lowrank:two", ":3"])
def test_a_codec_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not hash:BUCKETS or lowrank:RANK or dct:KEPT or sketch:COLUMNS"):
        parse_codec(text)


@pytest.mark.parametrize(("text", "said"), [("hash:99", "save nothing"), ("hash:0", "buckets"), ("lowrank:64", "rank")])
def test_a_codec_that_does_not_fit_the_model_is_said_in_words(text: str, said: str) -> None:
    with pytest.raises(SpecInvalid, match=rf"these options make no task: .*{said}"):
        task_spec(deal_wdbc(3, 2, 0), TaskSettings(codec=parse_codec(text)))


def test_a_program_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"--program takes the folder that consilium\.export wrote, and .*none is none"
    ):
        check(DemoOptions(program=tmp_path / "none"))
