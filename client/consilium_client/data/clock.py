"""Dates as the times of a series: `[clock]` of a mapping. Pure. Dates stay here: only differences are used.

[clock]
since = "intime"            # time zero: this column of the outcomes; or first = true: the stay's first row
zone = "Europe/Berlin"      # of dates without an offset such as Z or +02:00
format = "%d.%m.%Y %H:%M"   # without, ISO dates such as 2021-03-04 13:22
"""

from __future__ import annotations

import datetime
import math
import re
from functools import lru_cache
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from consilium_core.typed_toml import Section
from pydantic import Field, field_validator, model_validator

from consilium_client.data.table.cells import Cell

Position = Annotated[int, Field(ge=1, strict=True)]
SECONDS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_REMEMBERED = 1 << 17  # cells
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_SOME_TIME = datetime.datetime(1987, 11, 24, 13, 22, 37, tzinfo=datetime.UTC)


class Clock(Section):
    since: str | Position | None = Field(default=None, description="column of the outcomes with each stay's time zero")
    first: bool = Field(default=False, description="time zero is the stay's first row")
    zone: str | None = Field(
        default=None, max_length=60, description="of dates without an offset, as Europe/Berlin, or UTC"
    )
    format: str | None = Field(default=None, max_length=40, description="by Python's strptime; without, ISO dates")

    @field_validator("zone")
    @classmethod
    def _known(cls, zone: str | None) -> str | None:
        try:
            return zone if zone is None else ZoneInfo(zone).key
        except (ValueError, OSError, LookupError):
            raise ValueError("the zone is unknown; write one such as Europe/Berlin, or UTC") from None

    @field_validator("format")
    @classmethod
    def _keeps_the_time(cls, form: str | None) -> str | None:
        """Refuses a form that loses the half of the day, or whose zone Python drops (%Z)."""
        if form is None:
            return None
        found = None if "%Z" in form else _date(_SOME_TIME.strftime(form), form)
        kept = [_SOME_TIME.replace(second=0), _SOME_TIME.replace(minute=0, second=0)]
        kept += [_SOME_TIME, _SOME_TIME.replace(hour=0, minute=0, second=0)]
        if found is None or found.replace(tzinfo=datetime.UTC) not in kept:
            raise ValueError(f"the format {form!r} does not give a date and time; write one such as %d.%m.%Y %H:%M")
        return form

    @model_validator(mode="after")
    def _one_zero(self) -> Clock:
        if (self.since is None) != self.first:
            raise ValueError("write either since, the outcomes' column of each stay's time zero, or first = true")
        return self

    def microseconds(self, cell: Cell) -> float | str:
        """Since 1970 in UTC, exact to the year 2255; NaN without a date; or the name of a CellError."""
        return _instant(cell, self.format, self.zone)[0]

    def is_twice(self, cell: Cell) -> bool:
        """True for an hour that the zone's clock showed twice, when summer time ended. The first one is taken."""
        return _instant(cell, self.format, self.zone)[1]


def seconds_of(unit: str) -> int | None:
    """Seconds of a unit of time in words, such as hours; None for another."""
    return SECONDS.get(unit.strip().lower().removesuffix("s"))


_zone = lru_cache(ZoneInfo)


@lru_cache(_REMEMBERED)
def _instant(cell: Cell, form: str | None, zone: str | None) -> tuple[float | str, bool]:
    if cell is None or cell in ("", "?"):
        return math.nan, False
    date = _date(cell, form) if isinstance(cell, str) else None
    if date is None:
        return "DateMalformed", False
    is_twice = False
    if date.tzinfo is not None:
        if zone is not None:
            return "ZoneTwice", False
    elif zone is None:
        return "ZoneMissing", False
    else:
        date = date.replace(tzinfo=_zone(zone), fold=0)
        before, after = date.utcoffset(), date.replace(fold=1).utcoffset()
        if before != after:
            if before is None or after is None or before < after:
                return "TimeSkipped", False
            is_twice = True
    return float((date - _EPOCH) // _MICROSECOND), is_twice


def _date(text: str, form: str | None) -> datetime.datetime | None:
    """It does not raise, because Python's errors quote the text."""
    try:
        return datetime.datetime.fromisoformat(text) if form is None else datetime.datetime.strptime(text, form)
    except (ValueError, re.error):  # the latter: of some malformed formats
        return None
