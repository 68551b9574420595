"""The `consilium` commands of the documentation, found in its Markdown and read as the command line reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / "docs").glob("*.md"), ROOT / "deploy" / "README.md",
])  # fmt: skip
FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?:(?: {4}.*)?\n)+")
INLINE = re.compile(r"`([^`\n]+)`")
# The ways in which the documentation starts `consilium`; containers have it as their entry point.
COMMAND = re.compile(
    r"[ $]*(?:sudo -u \w+ )?(?:(?:docker compose exec \w+ )?(?:\.venv/bin/)?consilium"
    r"|docker compose run(?: --rm| --no-deps| -v \S+)* (?:node|worker)) (?=[a-z-])"
)
MAKE = re.compile(r" *make (demo|up) ARGS=\"([^\"]*)\"")
OPERATOR = re.compile(r"\s(?:&&|\|\||[|;&>])(?:\s|$)")  # of a shell; a command ends before it
# Placeholders, and a value of the kind that a reader puts there.
VALUES = {
    "ADDRESS": "0x…", "DIR-OR-URL": "artifacts", "MIRROR": "https://mirror.example.org/artifacts", "N": "3",
    "NAME": "honest", "ROLE": "hospital", "ROUND": "1", "TASK": "3", "URL": "http://127.0.0.1:8545",
}  # fmt: skip
ELLIPSIS = "…"


@dataclass(frozen=True)
class Documented:
    """`whole`: the command has all that it needs, for it is in a block of code and nothing of it is left out."""

    page: str
    text: str
    whole: bool

    @property
    def words(self) -> list[str]:
        """Arguments, with a value for each placeholder. Optional parts in brackets are there."""
        text = re.sub(r"\[([^\]]*)\]", r" \1 ", self.text).replace("0x…", "0x" + "1" * 40)
        found = [VALUES.get(word, word) for word in shlex.split(text, comments=True)]
        return [word.replace("0x…", "0x" + "1" * 40) for word in found]


def documented() -> Iterator[Documented]:
    for path in DOCUMENTS:
        page, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        blocks = [match[3] for match in FENCED.finditer(text) if match[2] in ("", "sh", "bash", "console")]
        prose = FENCED.sub("\n", text)
        blocks += [match[0] for match in INDENTED.finditer(prose)]
        for block in blocks:
            yield from _commands(page, block.replace("\\\n", " "), True)
        for match in INLINE.finditer(INDENTED.sub("\n", prose)):
            yield from _commands(page, match[1], False)


def _commands(page: str, text: str, is_block: bool) -> Iterator[Documented]:
    for line in text.splitlines():
        for part in OPERATOR.split(line.partition(" #")[0]):
            if made := MAKE.match(part):
                yield _read(page, f"{made[1]} {made[2]}", True)
            elif begun := COMMAND.match(part):
                yield _read(page, part[begun.end() :].strip(), is_block)


def _read(page: str, text: str, is_block: bool) -> Documented:
    """An ellipsis alone leaves options out. After an option it is a value, and at a word's end it repeats the word."""
    words = text.split(" ")
    left_out = [at for at, word in enumerate(words) if word == ELLIPSIS and not words[at - 1].startswith("--")]
    kept = " ".join(word for at, word in enumerate(words) if at not in left_out)
    return Documented(page, re.sub(r"(?<=[\]A-Z])…", "", kept), is_block and not left_out and "--help" not in words)


def leaf(app: click.Group, words: list[str]) -> tuple[click.Context, click.Command, list[str]]:
    """The command that the words name, the context of its group, and the remaining words. Raises UsageError."""
    command: click.Command = app
    parent = click.Context(app, info_name="consilium")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, found, words = command.resolve_command(parent, words)
        assert found is not None
        command = found
        if isinstance(command, click.Group):
            parent = click.Context(command, parent, info_name=name)
    return parent, command, words


def parsed(app: click.Group, words: list[str]) -> click.Context:
    """As the command line does it, without running the command. Raises UsageError: of an unknown command or option, and
    of an argument that is missing, superfluous or of another kind.
    """
    parent, command, rest = leaf(app, words)
    return command.make_context(command.name, list(rest), parent)


def unknown(app: click.Group, words: list[str]) -> list[str]:
    """The options of an incomplete command that it has not. Raises UsageError at an unknown command."""
    _, command, rest = leaf(app, words)
    known = options(command)
    return [word for word in rest if word.startswith("--") and word.partition("=")[0] not in known]


def options(command: click.Command) -> set[str]:
    return {"--help", *(name for one in command.params for name in (*one.opts, *one.secondary_opts))}


def commands(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command below a group, by its words."""
    for part, command in group.commands.items():
        yield f"{name} {part}".strip(), command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {part}".strip())
