"""What task files of several rooms' tests have in common."""

import re

# One numeric column and a label.
DATA = """
[data]
label = "sick"
classes = ["no", "yes"]
[[data.features]]
kind = "numeric"
name = "age"
min = 0.0
max = 120.0
"""
_LINE = r"^{} = ([0-9_]+)"


def of_few_rounds(task: str, rounds: int = 2) -> str:
    """A task file's text with fewer rounds, each for the same pay. A simulation takes as long as its rounds."""
    before, pool = (_value(task, name) for name in ("rounds", "pool"))
    for name, value in (("rounds", rounds), ("pool", pool * rounds // before)):
        task = re.sub(_LINE.format(name), f"{name} = {value}", task, flags=re.MULTILINE)
    return task


def _value(task: str, name: str) -> int:
    (found,) = re.findall(_LINE.format(name), task, re.MULTILINE)
    return int(found)
