"""A folder of DICOM files as a node reads it, beside pydicom that reads and drops the same: seconds, and peak memory.

Slices are CT of 128 × 128 pixels with 16 bits, uncompressed, with a header of thirty fields; the task's are 64 × 64, in
a window. Each reading has a new process. `peak_mib`: above what the process had before. `held_mib`: pixels that a node
keeps.
"""

from __future__ import annotations

import io
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import numpy as np

FILES, QUICK_FILES = (1_000, 10_000), (20, 60)
SIDE, HELD = 128, 64
MIB: Final = 1 << 20
READERS: Final = ("pydicom alone", "a node")


def write_folder(folder: Path, count: int, side: int = SIDE) -> None:
    """One class each half. A file's pixels and names are its own, its other bytes are alike."""
    from pydicom import uid
    from pydicom.dataset import FileDataset, FileMetaDataset

    made = FileDataset("", {}, preamble=bytes(128), file_meta=FileMetaDataset())
    made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID = uid.CTImageStorage
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID = uid.UID("1.2.3.4")
    made.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
    fields = {
        "PatientName": "Mustermann^Erika", "PatientID": "0", "PatientBirthDate": "19640812", "StudyDate": "20260314",
        "StudyInstanceUID": "1.2.3", "SeriesInstanceUID": "1.2.3.1", "InstitutionName": "Klinikum", "Modality": "CT",
        "Rows": side, "Columns": side, "SamplesPerPixel": 1, "PhotometricInterpretation": "MONOCHROME2",
        "BitsAllocated": 16, "BitsStored": 12, "HighBit": 11, "PixelRepresentation": 0, "RescaleSlope": "1",
        "RescaleIntercept": "-1024", "WindowCenter": "40", "WindowWidth": "400", "KVP": "120", "SliceThickness": "1",
        "PixelSpacing": ["0.7", "0.7"], "ImagePositionPatient": ["0", "0", "0"], "Manufacturer": "A maker",
        "ImageOrientationPatient": ["1", "0", "0", "0", "1", "0"], "InstanceNumber": "1", "PatientSex": "F",
    }  # fmt: skip
    for name, value in fields.items():
        setattr(made, name, value)
    random = np.random.default_rng(0)
    made.PixelData = bytes(side * side * 2)
    made["PixelData"].VR = "OW"
    made.save_as(stream := io.BytesIO(), enforce_file_format=True)
    header = stream.getvalue()[: -side * side * 2]
    for at in range(count):
        path = folder / ("ill", "well")[at % 2] / f"series-{at // 100}" / f"IM{at:06}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(header + random.integers(800, 1300, side * side, dtype=np.uint16).tobytes())


def read_alone(folder: Path) -> int:
    from pydicom import dcmread

    for path in folder.rglob("IM*"):
        assert dcmread(path).pixel_array.shape == (SIDE, SIDE)
    return 0


def read_as_node(folder: Path) -> int:
    from consilium_chain.tasks.image_schemas import ImageSchema, WindowSpec
    from consilium_client.data.image.reader import read_raw_images

    window = WindowSpec(center=40, width=400)
    schema = ImageSchema(kind="images", classes=["ill", "well"], height=HELD, width=HELD, window=window, modality="CT")
    return read_raw_images(folder, schema).images.pixels.nbytes


def reading(reader: str, folder: Path, warm: Path, answer: Connection) -> None:
    """In a process of its own. `warm`: a small folder, which loads what is loaded once."""
    read = dict(zip(READERS, (read_alone, read_as_node), strict=True))[reader]
    read(warm)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = peak_bytes()
    began, spent = time.perf_counter(), time.process_time()
    held = read(folder)
    answer.send((time.perf_counter() - began, time.process_time() - spent, peak_bytes() - before, held))


def peak_bytes() -> int:
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def in_new_process(reader: str, folder: Path, warm: Path) -> tuple[float, float, int, int]:
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=reading, args=(reader, folder, warm, its))
    process.start()
    its.close()
    found: tuple[float, float, int, int] = mine.recv()
    process.join()
    return found


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    """So far, after each reading. Files are in the system's cache: each was just written."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        write_folder(warm := Path(temporary) / "warm", 2)
        for count in QUICK_FILES if quick else FILES:
            write_folder(folder := Path(temporary) / str(count), count)
            for reader in READERS:
                seconds, cpu, peak, held = in_new_process(reader, folder, warm)
                rows.append({
                    "files": count, "reader": reader, "seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2),
                    "cpu_milliseconds_a_file": round(1000 * cpu / count, 3), "peak_mib": round(peak / MIB, 1),
                    "held_mib": round(held / MIB, 1),
                })  # fmt: skip
                yield {"what": "a folder of DICOM files as a node reads it, beside pydicom alone", "rows": rows}


def plot(result: dict[str, Any], folder: Path) -> None:
    """CPU time a file, and peak memory."""
    from bench.results_store import COLOURS, figure, write_figure

    drawn, (times, memory) = figure(7.0, 2.2, 2)
    for axes, key, label in (
        (times, "cpu_milliseconds_a_file", "ms of CPU a file"),
        (memory, "peak_mib", "peak memory, MiB"),
    ):
        rows = result["rows"]
        names = [f"{row['reader']}, {row['files']:,}" for row in rows]
        colours = [COLOURS["plain" if row["reader"] == READERS[0] else "committing"] for row in rows]
        axes.barh(names, [row[key] for row in rows], color=colours, height=0.6)
        axes.invert_yaxis()
        axes.set_xlabel(label)
    memory.set_yticklabels([])
    write_figure(folder, "scans", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"{row['files']:,} DICOM files, {row['reader']}",
            f"{row['seconds']} s, {row['cpu_milliseconds_a_file']} ms of CPU a file; peak {row['peak_mib']} MiB,"
            f" of which {row['held_mib']} MiB are kept",
        )
        for row in result["rows"]
    ]
