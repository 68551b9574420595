"""Writes a software bill of materials, CycloneDX 1.6 in JSON: this Python environment and both npm lock files, in one.

The same dependencies give the same bytes: no time stands in it but SOURCE_DATE_EPOCH's, and its serial number follows
from what it lists. Which of them needs which, the lock files say.
"""

from __future__ import annotations

import os
import sys
import tomllib
import uuid
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from dependencies import LOCKS, OWN, ROOT, Dependency, Rules, installed, locked
from packageurl import PackageURL

KINDS = {"python": "pypi", "npm": "npm"}


def bill(found: Iterable[Dependency], rules: Rules) -> str:
    """Each package and version once."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    itself = Component(type=ComponentType.APPLICATION, name=OWN, version=version, bom_ref=OWN)
    components = {one.key + one.version: _component(one, rules) for one in found}
    bom = Bom(components=components.values())
    bom.metadata.component = itself
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    listed = "\n".join(sorted(str(component.purl) for component in bom.components))
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, f"{OWN} {version}\n{listed}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it does not say what needs what
        return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _component(one: Dependency, rules: Rules) -> Component:
    group, _, name = one.name.rpartition("/")
    purl = PackageURL(KINDS[one.ecosystem], group or None, name, one.version)
    licence = rules.exceptions.get(one.key, {}).get("licence", one.licence)
    return Component(
        type=ComponentType.LIBRARY, group=group or None, name=name, version=one.version, purl=purl, bom_ref=str(purl),
        licenses=[LicenseExpression(licence)],
        hashes=[HashType(alg=HashAlgorithm.SHA_512, content=one.sha512)] if one.sha512 else [],
    )  # fmt: skip


def main(path: Path) -> None:
    rules = Rules.read()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(bill([*installed(rules), *(one for lock in LOCKS for one in locked(lock))], rules))
    print(path)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
