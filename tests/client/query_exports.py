"""Synthetic exports of one hospital: the same patients as an OMOP folder and as FHIR NDJSON."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from checkout_driver import ROOT

DAY = datetime.date(2025, 3, 1)
PER_MG = 88.42  # µmol/L of creatinine


@dataclass(frozen=True)
class Patient:
    """`creatinine`: mg/dL and its day, measured twice, the later one last; none if it was not measured."""

    id: int
    born: datetime.date
    sex: str
    creatinine: Sequence[tuple[datetime.date, float]]
    ill: bool

    @property
    def latest(self) -> float:
        return self.creatinine[-1][1] if self.creatinine else float("nan")


def patients(count: int, seed: int = 1) -> list[Patient]:
    dice = np.random.default_rng(seed)
    found = []
    for number in range(1, count + 1):
        days = sorted(dice.choice(7, 2, replace=False))
        values = np.round(dice.uniform(0.7, 1.6, 2), 2)
        measured = [
            (DAY - datetime.timedelta(int(6 - day)), float(value)) for day, value in zip(days, values, strict=True)
        ]
        born = datetime.date(int(dice.integers(1930, 2000)), int(dice.integers(1, 13)), int(dice.integers(1, 29)))
        sex = str(dice.choice(["male", "female"]))
        found.append(Patient(number, born, sex, measured if number % 5 else [], bool(dice.random() < 0.4)))
    return found


def write_omop(folder: Path, those: Iterable[Patient]) -> Path:
    """With rows that the query must leave out: other visits, later measurements, other units, late deaths."""
    folder.mkdir()
    person, visit, measurement, death = [], [], [], []
    for one in those:
        person.append((one.id, {"male": 8507, "female": 8532}[one.sex], one.born.year))
        visit += [
            (one.id, 9201, DAY),
            (one.id, 9201, DAY + datetime.timedelta(90)),
            (one.id, 9202, DAY.replace(month=1)),
        ]
        measurement += [(one.id, 3016723, day, value, 8840) for day, value in one.creatinine]
        measurement += [(one.id, 3016723, DAY + datetime.timedelta(1), 9.9, 8840), (one.id, 3004249, DAY, 120.0, 8876)]
        measurement += [(one.id, 3016723, DAY, 88.4, 8749)] * (one.id % 7 == 0)
        death.append((one.id, DAY + datetime.timedelta(20 if one.ill else 200)))
    columns = {
        "person": (person, "person_id gender_concept_id year_of_birth"),
        "visit_occurrence": (visit, "person_id visit_concept_id visit_start_date"),
        "measurement": (
            measurement, "person_id measurement_concept_id measurement_date value_as_number unit_concept_id",
        ),
        "death": (death, "person_id death_date"),
    }  # fmt: skip
    for name, (rows, names) in columns.items():
        frame = pd.DataFrame(rows, columns=names.split())
        if name == "measurement":
            frame["measurement_date"] = pd.to_datetime(frame["measurement_date"])
            frame.to_parquet(folder / f"{name}.parquet")
        else:
            frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def resources(those: Iterable[Patient], kidney: str = "709044004") -> list[dict[str, Any]]:
    """Each third value is in µmol/L. A second code beside LOINC's, and another laboratory value."""
    found: list[dict[str, Any]] = []
    for one in those:
        subject = {"reference": f"Patient/{one.id}" if one.id % 2 else f"urn:uuid:{one.id}"}
        found.append(
            {"resourceType": "Patient", "id": str(one.id), "birthDate": one.born.isoformat(), "gender": one.sex}
        )
        for at, (day, value) in enumerate(one.creatinine):
            is_molar = (one.id + at) % 3 == 0
            quantity = {"value": value * PER_MG if is_molar else value, "code": "umol/L" if is_molar else "mg/dL"}
            found.append(_observation(subject, "2160-0", day, quantity))
        found.append(_observation(subject, "718-7", DAY, {"value": 13.5, "code": "g/dL"}))
        if one.ill:
            code = {"coding": [{"system": "http://snomed.info/sct", "code": kidney}]}
            found += [{"resourceType": "Condition", "id": f"c{one.id}", "subject": subject, "code": code}] * 2
    return found


def _observation(subject: dict[str, str], code: str, day: datetime.date, quantity: dict[str, Any]) -> dict[str, Any]:
    coding = [{"system": "http://clinic.example", "code": "LAB"}, {"system": "http://loinc.org", "code": code}]
    return {
        "resourceType": "Observation", "id": f"o{subject['reference']}{day}", "subject": subject,
        "code": {"coding": coding}, "effectiveDateTime": day.isoformat(), "valueQuantity": quantity,
    }  # fmt: skip


def write_fhir(folder: Path, found: list[dict[str, Any]], bundled: bool) -> Path:
    """NDJSON of resources, a file for each type; or one file of Bundles of ten entries each."""
    folder.mkdir()
    if bundled:
        bundles = [
            {"resourceType": "Bundle", "entry": [{"resource": one} for one in found[start : start + 10]]}
            for start in range(0, len(found), 10)
        ]
        write_lines(folder / "bundles.ndjson", bundles)
        return folder
    for kind in {one["resourceType"] for one in found}:
        write_lines(folder / f"{kind}.ndjson", [one for one in found if one["resourceType"] == kind])
    return folder


def write_lines(path: Path, objects: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")


def documented(about: str) -> str:
    """The mapping in docs/data.md after a sentence that begins so."""
    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    found = re.search(rf"{about}.*?```toml\n(.*?)```", text, re.DOTALL)
    assert found is not None
    assert "query" in tomllib.loads(found.group(1))
    return found.group(1)
