"""Whatever bytes come, whoever reads them gives back a trusted value or refuses by name, soon and in little memory.

`make test` tries some inputs for each parser of the table, `make test-deep` many.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from mutations import bounded
from parsers import PARSERS

SHORT = sorted(name for name, parser in PARSERS.items() if not parser.fuzzed_in)
# A stack that is nearly used up is the test's own, not the parser's: hypothesis calls through a few dozen frames.
PLAIN = settings(database=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_what_is_valid_is_read(name: str, tmp_path: Path) -> None:
    """Else all that follows would be refused at the first byte."""
    parser = PARSERS[name]
    read = []
    for sample in parser.samples():
        try:
            read.append(parser.read(sample, tmp_path))
        except parser.refusals:
            continue
    assert read


@pytest.mark.parametrize("name", SHORT)
def test_hostile_bytes_are_read_or_refused_by_name(name: str, tmp_path: Path) -> None:
    try_out(name, tmp_path, 40)


@pytest.mark.deep
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("name", sorted(PARSERS))
def test_many_hostile_bytes_are_read_or_refused_by_name(name: str, tmp_path: Path) -> None:
    try_out(name, tmp_path, 4_000)


def try_out(name: str, folder: Path, examples: int) -> None:
    parser = PARSERS[name]
    for sample in parser.samples():  # loads what is loaded once
        try_one(name, sample, folder, 2_000)

    @given(parser.inputs())
    @settings(PLAIN, max_examples=examples, phases=[Phase.generate, Phase.shrink])
    def run(raw: bytes) -> None:
        try_one(name, raw, folder)

    run()


def try_one(name: str, raw: bytes, folder: Path, megabytes: int = 0) -> None:
    parser = PARSERS[name]
    with bounded(megabytes or parser.megabytes):
        try:
            parser.read(raw, folder)
        except parser.refusals as error:
            str(error)


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(name for name, parser in PARSERS.items() if parser.bombs))
def test_small_input_does_not_grow(name: str, tmp_path: Path) -> None:
    parser = PARSERS[name]
    try_one(name, parser.samples()[0], tmp_path, 2_000)
    assert parser.bombs is not None
    for bomb in parser.bombs():
        try_one(name, bomb, tmp_path)
