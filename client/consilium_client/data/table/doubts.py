"""Columns of a readable table that are probably wrong: their values or labels alone show it. Pure.

Every rule needs many rows (`LEAST`), so that chance seldom looks like a fault. Nothing here keeps or shows a value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from consilium_chain.tasks.features import TYPICAL_DEVIATION, TYPICAL_MEAN, CategoryFeature, Feature, NumericFeature
from numpy.typing import NDArray

Values = NDArray[np.float64]

LEAST = 10  # rows; of a class, if classes are compared
LEAST_TO_SEPARATE = 20  # rows of each class: a good measurement separates fewer by chance
FEW = 8  # different numbers: they are more like codes
MOST_OUTSIDE = 0.2  # of a column's known values: more are refused
LEAKS = 0.99  # from which area under the ROC curve, or share of right guesses of the rarer classes, labels are known
FAR = 3.0  # deviations: such a value is not typical
GAP = 2.0  # deviations between such a value and the next one
NEAR = 1.0  # deviations: such a value is typical
SPREAD = 2.0  # most that a typical spread differs from the task's, as a factor
APART = 1.5  # deviations between two parts of a column
ALIKE, BY_SAMPLING = 0.5, 1.5  # deviations: so near are two parts' middles in one unit; more, over the root of rows
STRAGGLERS = 0.02  # of the values, that lie between two parts at most
LEVELS = 3  # numbers of a grade, whose ends are far from its middle
NARROW = 0.1  # of the task's deviation: so small a spread is not typical
FILLED, AMID = 0.1, 0.05  # the least share of one value that fills gaps; its distance from the middle, in deviations
COMMON = 10.0  # times as many as of any other value
BY_CHANCE = 10.0  # times as many repeated rows as independent columns would have
# Numbers that stand for missing values in many programs.
PLACEHOLDERS = (-1.0, *(sign * float("9" * digits) for digits in range(1, 6) for sign in (1, -1)), 777.0, 888.0)
QUARTILES_OF_DEVIATION = 1.349  # of a normal distribution


class Conversion(NamedTuple):
    """Value · scale + offset, as a mapping has it."""

    words: str
    scale: float
    offset: float = 0.0


def _both(one: str, other: str, factor: float, of: str = "") -> tuple[Conversion, Conversion]:
    substance = of and f" of {of}"
    return (
        Conversion(f"from {one} to {other}{substance}", factor),
        Conversion(f"from {other} to {one}{substance}", 1 / factor),
    )


CONVERSIONS = (
    Conversion("from °F to °C", 5 / 9, -160 / 9),
    Conversion("from °C to °F", 9 / 5, 32),
    Conversion("from K to °C", 1, -273.15),
    *_both("mmol/l", "mg/dl", 38.67, "cholesterol"),
    *_both("mmol/l", "mg/dl", 18.016, "glucose"),
    *_both("mmol/l", "mg/dl", 88.57, "triglycerides"),
    *_both("mg/dl", "µmol/l", 88.42, "creatinine"),
    *_both("mg/dl", "µmol/l", 17.1, "bilirubin"),
    *_both("g/dl", "g/l", 10),
    *_both("inches", "cm", 2.54),
    *_both("lb", "kg", 0.45359),
    *_both("m", "cm", 100),
    *_both("kPa", "mmHg", 7.50062),
    *_both("years", "days", 365.25),
    *_both("years", "months", 12),
    *_both("1/µl", "1000/µl", 0.001),
)


# --- The label -------------------------------------------------------------------------------------------------------


def leaks(values: Values, labels: NDArray[np.int64], feature: Feature) -> bool:
    """True if the column (n,), or that a value is missing in it, gives nearly every label away."""
    numbers, counts = np.unique(labels, return_counts=True)
    compared = numbers[counts >= LEAST]
    if len(compared) < 2:
        return False
    is_one = np.isin(labels, compared)
    values, labels = values[is_one], labels[is_one]
    known = ~np.isnan(values)
    if _tells(known.astype(np.float64), labels):
        return True
    values, labels = values[known], labels[known]
    if isinstance(feature, CategoryFeature) or len(np.unique(values)) <= FEW:
        return _tells(values, labels)
    return _separates(values, labels)


def _tells(codes: Values, labels: NDArray[np.int64]) -> bool:
    """True if guessing the commonest label of each code is right for nearly all rows of the rarer classes."""
    if len(labels) == 0:
        return False
    _, classes = np.unique(labels, return_inverse=True)
    _, inverse = np.unique(codes, return_inverse=True)
    table = np.zeros((inverse.max() + 1, classes.max() + 1))
    np.add.at(table, (inverse, classes), 1)
    rarer = len(labels) - table.sum(axis=0).max()
    wrong = len(labels) - table.max(axis=1).sum()
    return bool(rarer >= LEAST and wrong <= (1 - LEAKS) * rarer)


def _separates(values: Values, labels: NDArray[np.int64]) -> bool:
    """True if each class lies beside the next one, by their means, with hardly any overlap."""
    parts = [values[labels == one] for one in np.unique(labels)]
    parts = sorted((part for part in parts if len(part) >= LEAST_TO_SEPARATE), key=lambda part: float(part.mean()))
    return len(parts) > 1 and all(_area(lower, upper) >= LEAKS for lower, upper in pairwise(parts))


def _area(lower: Values, upper: Values) -> float:
    """Chance that a value of `upper` is the larger one, ties counting half."""
    ordered = np.sort(lower)
    below = np.searchsorted(ordered, upper, "left") + np.searchsorted(ordered, upper, "right")
    return float(below.mean()) / (2 * len(lower))


# --- One column ------------------------------------------------------------------------------------------------------


def placeholders(known: Values, feature: NumericFeature) -> int:
    """Counts the values that repeat at one end of the column and look like a code for a missing value: they lie far
    from all others, or outside the task's range and are a common code.
    """
    found = 0
    for end in {float(known.min()), float(known.max())} - {0.0} if len(known) else ():
        others, count = known[known != end], int((known == end).sum())
        if count < 2 or len(np.unique(others)) < 2:
            continue
        spread, gap = float(others.std()), float(np.abs(others - end).min())
        is_far = abs(end - float(others.mean())) > FAR * spread and gap > GAP * spread
        is_far &= len(np.unique(others)) >= LEVELS or end in PLACEHOLDERS
        is_outside = not feature.min <= end <= feature.max and end in PLACEHOLDERS
        _, counts = np.unique(others, return_counts=True)
        is_code = end in PLACEHOLDERS and len(counts) > FEW and count >= max(LEAST / 2, COMMON / 2 * counts.max())
        found += count if is_far or is_outside or is_code else 0
    return found


def filled(known: Values) -> int:
    """Counts the values that are one and the same at the middle of the others, far more than of any other."""
    numbers, counts = np.unique(known, return_counts=True)
    if len(numbers) <= 2 * LEAST:
        return 0
    at = int(counts.argmax())
    count, others = int(counts[at]), known[known != numbers[at]]
    is_common = count >= max(LEAST, FILLED * len(known), COMMON * np.delete(counts, at).max())
    distance = min(abs(numbers[at] - others.mean()), abs(numbers[at] - np.median(others)))
    return count if is_common and distance <= AMID * others.std() else 0


def mixed(known: Values, name: str) -> tuple[Conversion, int] | None:
    """The conversion by which a part of the values, apart from the others, becomes like them; the part's size. `name`:
    the column's, whose own substance comes first.
    """
    sides = {fixed: list(_apart(_shifted_from(fixed, known))) for fixed in {_fixed(one) for one in CONVERSIONS}}
    fits = [(one, *found) for one in CONVERSIONS for found in _fits(one, sides[_fixed(one)])]
    best = min(fits, key=lambda fit: (name.lower() not in fit[0].words, fit[1]), default=None)
    return None if best is None else (best[0], best[2])


def _fixed(by: Conversion) -> float | None:
    """The value that a conversion leaves as it is: 0, or -40 of °C and °F; None without a factor."""
    return None if by.scale == 1 else round(by.offset / (1 - by.scale), 6)


def _shifted_from(fixed: float | None, known: Values) -> Values:
    """The values in ascending order, as logarithms of their distances from `fixed`. There a conversion is a shift, so
    that both parts are equally wide, however wide that is.
    """
    return np.sort(known) if fixed is None else np.sort(np.log(known[known > fixed] - fixed))


def _fits(by: Conversion, sides: Iterable[tuple[Values, Values]]) -> Iterator[tuple[float, int]]:
    """If the smaller side converts into the larger: the distance of the middles then, in deviations, and its size."""
    shift = by.offset if by.scale == 1 else math.log(by.scale)
    for few, many in sides:
        spread, other = _spread(many), _spread(few)
        distance = abs(_middle(few) + shift - _middle(many))
        near = min(NEAR, ALIKE + BY_SAMPLING / math.sqrt(len(few))) * spread
        if distance <= near and spread / SPREAD <= other <= SPREAD * spread:
            yield distance / spread, len(few)


def _apart(ordered: Values) -> Iterator[tuple[Values, Values]]:
    """Both sides of the widest stretch with hardly any value, the smaller one first, if it is wide against both: of a
    stretch without values, and of one with stragglers of larger sides.
    """
    for stragglers in (0, int(STRAGGLERS * len(ordered))):
        least, step = max(LEAST, 2 * stragglers), stragglers + 1
        stretches = (ordered[step:] - ordered[:-step])[least - 1 : len(ordered) - least - stragglers]
        if not len(stretches):
            continue
        at = least + int(stretches.argmax()) + (stragglers + 1) // 2
        few, many = sorted((ordered[:at], ordered[at:]), key=len)
        are_many = min(len(np.unique(few)), len(np.unique(many))) > FEW
        if are_many and stretches.max() > APART * max(_spread(few), _spread(many)):
            yield few, many


def conversion(known: Values, feature: NumericFeature) -> Conversion | None:
    """The one by which untypical values (n,) become typical ones of the task's; None if there is none."""
    if len(known) < LEAST:
        return None
    mean, deviation = typical(feature)
    middle, spread = _middle(known), _spread(known)
    is_narrow = None not in (feature.mean, feature.deviation) and spread < NARROW * deviation
    if spread == 0 or (abs(middle - mean) <= FAR * deviation and not is_narrow):
        return None
    fits = [
        one
        for one in CONVERSIONS
        if abs(middle * one.scale + one.offset - mean) <= NEAR * deviation
        and 1 / SPREAD <= spread * one.scale / deviation <= SPREAD
    ]

    def rank(one: Conversion) -> tuple[bool, float]:
        """The column's own substance comes first, then the nearest spread."""
        return feature.name.lower() not in one.words, abs(math.log(spread * one.scale / deviation))

    return min(fits, key=rank, default=None)


def typical(feature: NumericFeature) -> tuple[float, float]:
    """Mean and deviation by the schema, in the task's unit."""
    width = feature.max - feature.min
    mean = feature.min + TYPICAL_MEAN * width if feature.mean is None else feature.mean
    return mean, TYPICAL_DEVIATION * width if feature.deviation is None else feature.deviation


def _middle(known: Values) -> float:
    return float(np.median(known))


def _spread(known: Values) -> float:
    low, high = np.percentile(known, [25, 75])
    return float(high - low) / QUARTILES_OF_DEVIATION


# --- Several columns -------------------------------------------------------------------------------------------------


def swapped(features: Sequence[NumericFeature], values: Mapping[str, Values]) -> dict[str, str]:
    """Columns whose values fit one another's typical ones far better than their own, each with the other's name."""
    known = {one.name: values[one.name][~np.isnan(values[one.name])] for one in features}
    told = [one for one in features if len(known[one.name]) >= LEAST and _spread(known[one.name]) > 0]
    middles = {one.name: _middle(known[one.name]) for one in told}

    def off(values_of: NumericFeature, by: NumericFeature) -> float:
        mean, deviation = typical(by)
        return abs(middles[values_of.name] - mean) / deviation

    found: dict[str, str] = {}
    for one, other in combinations(told, 2):
        as_they_are = off(one, one), off(other, other)
        exchanged = off(one, other), off(other, one)
        is_better = all(swap < now for swap, now in zip(exchanged, as_they_are, strict=True))
        if is_better and max(as_they_are) > FAR and max(exchanged) < FAR / 2 and sum(exchanged) < sum(as_they_are) / 2:
            found[one.name], found[other.name] = other.name, one.name
    return found


def repeated_by_chance(columns: Values) -> float:
    """The number of pairs of equal rows if the columns (n, k) were independent, by their own pairs of equal values."""
    pairs = max(len(columns) * (len(columns) - 1), 1)
    alike = 1.0
    for column in columns.T:
        _, counts = np.unique(column, return_counts=True)
        alike *= float((counts * (counts - 1)).sum()) / pairs
    return alike * pairs / 2
