"""One row of the table by atheris, which looks for inputs that reach new code: guided.py NAME SECONDS FOLDER.

A program of its own, since libFuzzer ends the process. Its exit code is 0 where nothing was found.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["consilium_zk", "consilium_chain", "consilium_client", "consilium_server"]):
    from parsers import PARSERS


def main(name: str, seconds: str, folder: Path) -> None:
    parser, corpus = PARSERS[name], folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(parser.samples()):
        (corpus / f"sample-{number}").write_bytes(sample)

    def try_one(raw: bytes) -> None:
        try:
            parser.read(raw, folder)
        except parser.refusals as error:
            str(error)

    limits = ["-timeout=20", "-rss_limit_mb=3072", f"-max_total_time={seconds}", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *limits, str(corpus)], try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
