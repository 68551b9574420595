"""The bill of materials lists all there is, is CycloneDX 1.6 by its schema, and is the same bytes each time."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
from referencing import Registry, Resource
from test_dependencies import ROOT, everything

SCHEMAS = {
    "bom-1.6.SNAPSHOT.schema.json": "http://cyclonedx.org/schema/bom-1.6.schema.json",
    "spdx.SNAPSHOT.schema.json": "http://cyclonedx.org/schema/spdx.schema.json",
    "jsf-0.82.SNAPSHOT.schema.json": "http://cyclonedx.org/schema/jsf-0.82.schema.json",
}


def written(path: Path) -> bytes:
    subprocess.run([sys.executable, str(ROOT / "audit" / "sbom.py"), str(path)], check=True, capture_output=True)
    return path.read_bytes()


def test_the_bill_of_materials_is_whole_valid_and_the_same_each_time(tmp_path: Path) -> None:
    raw = written(tmp_path / "a" / "sbom.json")
    assert written(tmp_path / "b" / "sbom.json") == raw
    bill = json.loads(raw)
    schemas = {name: json.loads((files("cyclonedx.schema") / "_res" / name).read_text()) for name in SCHEMAS}
    registry = Registry().with_resources((uri, Resource.from_contents(schemas[name])) for name, uri in SCHEMAS.items())
    jsonschema.Draft7Validator(schemas["bom-1.6.SNAPSHOT.schema.json"], registry=registry).validate(bill)

    listed = {(one.get("group", ""), one["name"], one["version"]): one for one in bill["components"]}
    wanted = {(*one.name.rpartition("/")[::2], one.version): one for one in everything()}
    assert listed.keys() == wanted.keys()
    for key, one in wanted.items():
        assert listed[key]["purl"].startswith("pkg:npm/" if one.ecosystem == "npm" else "pkg:pypi/")
        assert listed[key]["licenses"]
        assert bool(listed[key].get("hashes")) is (one.ecosystem == "npm")
