"""Names of DICOM fields that identify a person. This module needs no library of images.

Source: DICOM PS3.15, table E.1-1 (Basic Application Level Confidentiality Profile): those of its attributes that name
a person, a place, a number or a date of a person's stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

PREAMBLE, MAGIC = 128, b"DICM"
DICOM_START = PREAMBLE + len(MAGIC)

IDENTIFYING = (
    "AccessionNumber", "AcquisitionDate", "AdditionalPatientHistory", "AdmissionID", "BranchOfService",
    "ContentDate", "CountryOfResidence", "CurrentPatientLocation", "DeviceSerialNumber", "EthnicGroup",
    "FrameOfReferenceUID", "ImageComments", "InstitutionAddress", "InstitutionName", "InstitutionalDepartmentName",
    "IssuerOfPatientID", "MedicalAlerts", "MedicalRecordLocator", "MilitaryRank", "NameOfPhysiciansReadingStudy",
    "Occupation", "OperatorsName", "OtherPatientIDs", "OtherPatientIDsSequence", "OtherPatientNames",
    "PatientAddress", "PatientAge", "PatientBirthDate", "PatientBirthName", "PatientBirthTime", "PatientComments",
    "PatientID", "PatientInsurancePlanCodeSequence", "PatientMotherBirthName", "PatientName",
    "PatientReligiousPreference", "PatientSex", "PatientSize", "PatientTelephoneNumbers", "PatientWeight",
    "PerformingPhysicianName", "PhysiciansOfRecord", "ReferringPhysicianName", "RegionOfResidence",
    "RequestAttributesSequence", "RequestingPhysician", "SOPInstanceUID", "SeriesDate", "SeriesInstanceUID",
    "StationName", "StudyComments", "StudyDate", "StudyID", "StudyInstanceUID", "StudyTime",
)  # fmt: skip


@dataclass
class Headers:
    """Files whose DICOM header has a value, by the field's name; and files that say that text is burned in."""

    identifying: Counter[str] = field(default_factory=Counter)
    files: int = 0
    burned_in: int = 0

    def note(self, fields: Iterable[str], burned_in: bool) -> None:
        """Counts the fields of `IDENTIFYING` that one file has."""
        present = tuple(fields)
        self.identifying.update(present)
        self.files += bool(present)
        self.burned_in += burned_in


def is_dicom(start: bytes) -> bool:
    """By a file's first `DICOM_START` bytes."""
    return start[PREAMBLE:DICOM_START] == MAGIC


def is_dicom_file(path: Path) -> bool:
    """Raises OSError."""
    with path.open("rb") as file:
        return is_dicom(file.read(DICOM_START))
