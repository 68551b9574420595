"""Large files as a node reads them, beside pandas and pydicom that read the same: seconds, and memory by file size.

A table has 65,000 rows and 10 columns of the task's among others; a series 20,000 stays, 12 variables and millions of
shuffled rows; DICOM files are 10,000 CT slices. A larger file has more or wider columns that are ignored, more
measurements or pixels, and as many examples. Each reading has a new process; the two readers take turns. `beyond_mib`:
peak memory above what the process had before, without the examples that a node keeps.
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from bench.client.scans import HELD, MIB, peak_bytes, write_folder

MIBS, QUICK_MIBS = (256, 1024), (1, 2)
PAIRS: Final = 2
DISTINCT: Final = 64  # lines of a table; they repeat
ROWS, USED = 65_000, 10
STAYS, VARIABLES, STEPS = 20_000, 12, 48
FILES, QUICK_FILES = 10_000, 20
NODE, ALONE = "a node", "alone"
TABLE, TABLE_PARQUET, SERIES, SERIES_PARQUET, SCANS = (
    "CSV", "Parquet", "series, CSV", "series, Parquet", "DICOM, 10,000 files",
)  # fmt: skip
LIBRARY: Final = {
    TABLE: "pandas",
    TABLE_PARQUET: "pandas",
    SERIES: "pandas",
    SERIES_PARQUET: "pandas",
    SCANS: "pydicom",
}


# Files of so many MiB; of 0, small ones


def _rows(mib: int, rows: int) -> int:
    return rows if mib else 100


def write_table(folder: Path, mib: int) -> Path:
    """Cells of seven digits, and so many columns as make the size."""
    random, columns, path = np.random.default_rng(0), max(USED, mib * MIB // (ROWS * 8)), folder / "rows.csv"
    cells = np.array([f"{value:.5f}" for value in random.uniform(0, 10, 10_000)])
    lines = [",".join(cells[random.integers(0, len(cells), columns)]) for _ in range(DISTINCT)]
    with path.open("w") as file:
        file.write(",".join([*(f"c{at}" for at in range(columns)), "ill"]) + "\n")
        file.writelines(f"{lines[row % DISTINCT]},{row % 2}\n" for row in range(_rows(mib, ROWS)))
    return path


def write_table_parquet(folder: Path, mib: int) -> Path:
    """A hundred columns of texts that a task does not read, so long as make the size."""
    import pyarrow
    import pyarrow.parquet

    random, path, writer = np.random.default_rng(0), folder / "rows.parquet", None
    text = random.bytes(MIB).hex()
    rows, length = _rows(mib, 5_000), max(1, mib * MIB // (ROWS * 100))
    for begin in range(0, _rows(mib, ROWS), 5_000):
        starts = random.integers(0, MIB, (100, rows)).tolist()
        texts = {f"t{at}": [text[one : one + length] for one in own] for at, own in enumerate(starts)}
        values = {f"c{at}": random.uniform(0, 10, rows) for at in range(USED)}
        part = pyarrow.table({**values, **texts, "ill": np.arange(begin, begin + rows) % 2})
        writer = writer or pyarrow.parquet.ParquetWriter(path, part.schema, compression="NONE", use_dictionary=False)
        writer.write_table(part)
    if writer is not None:
        writer.close()
    return path


def _measurements(mib: int) -> Iterator[Any]:
    """Parts without end; after some, the same again."""
    import pandas as pd

    random, parts, rows = np.random.default_rng(0), [], _rows(mib, 100_000)
    for _ in range(DISTINCT // 8):
        values = np.round(random.uniform(0, 100, (rows, VARIABLES)), 1)
        values[random.random(values.shape) < 0.6] = np.nan
        frame = pd.DataFrame(values, columns=[f"v{at}" for at in range(VARIABLES)])
        frame.insert(0, "time", np.round(random.uniform(0, 60, rows), 3))
        frame.insert(0, "stay", random.integers(0, STAYS, rows))
        parts.append(frame)
    return cycle(parts)


def write_series(folder: Path, mib: int) -> Path:
    series, parts = folder / "series", _measurements(mib)
    series.mkdir()
    texts = cycle([next(parts).to_csv(index=False, header=False).encode() for _ in range(DISTINCT // 8)])
    with (series / "measurements.csv").open("wb") as file:
        file.write(",".join(next(parts).columns).encode() + b"\n")
        while file.tell() < max(mib * MIB, 100):
            file.write(next(texts))
    return _with_outcomes(series)


def write_series_parquet(folder: Path, mib: int) -> Path:
    import pyarrow
    import pyarrow.parquet

    series, parts, writer = folder / "series", _measurements(mib), None
    series.mkdir()
    path = series / "measurements.parquet"
    while writer is None or path.stat().st_size < mib * MIB:
        part = pyarrow.Table.from_pandas(next(parts), preserve_index=False)
        writer = writer or pyarrow.parquet.ParquetWriter(path, part.schema, compression="NONE", use_dictionary=False)
        writer.write_table(part)
    writer.close()
    return _with_outcomes(series)


def _with_outcomes(series: Path) -> Path:
    (series / "outcomes.csv").write_text("stay,died\n" + "".join(f"{stay},{stay % 2}\n" for stay in range(STAYS)))
    return series


def write_scans(folder: Path, mib: int, files: int = FILES) -> Path:
    scans = folder / "scans"
    scans.mkdir()
    write_folder(scans, files, side=max(16, int((mib * MIB / files / 2) ** 0.5)))
    return scans


WRITERS: Final[dict[str, Callable[[Path, int], Path]]] = {
    TABLE: write_table, TABLE_PARQUET: write_table_parquet, SERIES: write_series, SERIES_PARQUET: write_series_parquet,
    SCANS: write_scans,
}  # fmt: skip


# Readers: each gives the bytes that it keeps


def table_as_node(path: Path) -> int:
    from consilium_chain.tasks.data_schemas import TableSchema
    from consilium_client.data.mapping import Mapping
    from consilium_client.data.table.reader import checked, read_raw

    features = [{"name": f"c{at}", "min": 0, "max": 10} for at in range(USED)]
    schema = TableSchema.model_validate({"label": "ill", "classes": ["no", "yes"], "features": features})
    table = checked(read_raw(path, schema, Mapping()), schema)
    return table.features.nbytes + table.labels.nbytes


def table_alone(path: Path) -> int:
    import pandas as pd

    names = [*(f"c{at}" for at in range(USED)), "ill"]
    frame = pd.read_csv(path, usecols=names) if path.suffix == ".csv" else pd.read_parquet(path, columns=names)
    return int(frame.memory_usage().sum())


def series_as_node(path: Path) -> int:
    from consilium_chain.tasks.series_schema import SeriesSchema
    from consilium_client.data.series.kind import KIND
    from consilium_client.data.series.reader import read_raw

    features = [{"name": f"v{at}", "min": 0, "max": 100} for at in range(VARIABLES)]
    asked = {"label": "died", "classes": ["no", "yes"], "steps": STEPS}
    schema = SeriesSchema.model_validate({"kind": "series", "features": features, **asked})
    return KIND.examples(read_raw(path, schema, None), schema).values.nbytes


def series_alone(path: Path) -> int:
    import pandas as pd

    (file,) = path.glob("measurements.*")
    frame = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
    return int(frame.memory_usage().sum())


def scans_as_node(path: Path) -> int:
    from consilium_chain.tasks.image_schemas import ImageSchema, WindowSpec
    from consilium_client.data.image.reader import read_raw_images

    window = WindowSpec(center=40, width=400)
    schema = ImageSchema(kind="images", classes=["ill", "well"], height=HELD, width=HELD, window=window, modality="CT")
    return read_raw_images(path, schema).images.pixels.nbytes


def scans_alone(path: Path) -> int:
    from pydicom import dcmread

    return max(dcmread(file).pixel_array.nbytes for file in path.rglob("IM*"))


READERS: Final = {
    TABLE: (table_as_node, table_alone), TABLE_PARQUET: (table_as_node, table_alone),
    SERIES: (series_as_node, series_alone), SERIES_PARQUET: (series_as_node, series_alone),
    SCANS: (scans_as_node, scans_alone),
}  # fmt: skip


def reading(kind: str, by_node: bool, path: Path, warm: Path, answer: Connection) -> None:
    """In a process of its own. `warm`: small data, which load what is loaded once."""
    read = READERS[kind][0 if by_node else 1]
    read(warm)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = peak_bytes()
    began, spent = time.perf_counter(), time.process_time()
    held = read(path)
    answer.send((time.perf_counter() - began, time.process_time() - spent, peak_bytes() - before, held))


def in_new_process(kind: str, by_node: bool, path: Path, warm: Path) -> tuple[float, float, int, int]:
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=reading, args=(kind, by_node, path, warm, its))
    process.start()
    its.close()
    found: tuple[float, float, int, int] = mine.recv()
    process.join()
    return found


def size_of(path: Path) -> int:
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file()) if path.is_dir() else path.stat().st_size


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    """So far, after each file. Files are in the system's cache: each was just written."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for kind, write in WRITERS.items():
            (small := Path(temporary) / "warm").mkdir()
            warm = write_scans(small, 0, 2) if kind == SCANS else write(small, 0)
            for mib in QUICK_MIBS if quick else MIBS:
                (folder := Path(temporary) / f"{mib}").mkdir()
                path = write_scans(folder, mib, QUICK_FILES) if quick and kind == SCANS else write(folder, mib)
                rows += _pair(kind, path, warm, PAIRS if mib == MIBS[-1] else 1)
                shutil.rmtree(folder)
                yield {"what": "large files as a node reads them, beside pandas and pydicom alone", "rows": rows}
            shutil.rmtree(small)


def _pair(kind: str, path: Path, warm: Path, pairs: int) -> list[dict[str, Any]]:
    found: dict[bool, list[tuple[float, float, int, int]]] = {True: [], False: []}
    for _ in range(pairs):
        for by_node, of in found.items():
            of.append(in_new_process(kind, by_node, path, warm))
    size, rows = size_of(path), []
    for by_node, of in found.items():
        peak, held = max(one[2] for one in of), of[0][3]
        rows.append({
            "data": kind, "mib": round(size / MIB), "reader": NODE if by_node else f"{LIBRARY[kind]} {ALONE}",
            "seconds": [round(one[0], 1) for one in of], "cpu_seconds": round(median(one[1] for one in of), 1),
            "peak_mib": round(peak / MIB), "kept_mib": round(held / MIB),
            "beyond_mib": round((peak - held) / MIB) if by_node else None,
        })  # fmt: skip
    return rows


def plot(result: dict[str, Any], folder: Path) -> None:
    """CPU time of the larger files, and a node's memory beyond the kept examples at both sizes."""
    from bench.results_store import COLOURS, figure, write_figure

    drawn, (times, memory) = figure(9.0, 3.4, 2)
    kinds = list(dict.fromkeys(row["data"] for row in result["rows"]))
    for at, kind in enumerate(kinds):
        rows = [row for row in result["rows"] if row["data"] == kind]
        large = max(row["mib"] for row in rows)
        for row in rows:
            is_node = row["reader"] == NODE
            colour = COLOURS["committing" if is_node else "plain"]
            if row["mib"] == large:
                times.barh(at + (0.2 if is_node else -0.2), row["cpu_seconds"], color=colour, height=0.36)
            if is_node:
                memory.barh(
                    at + (0.2 if row["mib"] == large else -0.2), row["beyond_mib"], height=0.36,
                    color=COLOURS["committing" if row["mib"] == large else "uploading"],
                )  # fmt: skip
    times.set_yticks(range(len(kinds)), kinds)
    memory.set_yticks(range(len(kinds)), [])
    times.set_xlabel("CPU s for 1 GiB (grey: pandas, pydicom)")
    memory.set_xlabel("MiB beyond examples (light: ¼ GiB)")
    for axes in (times, memory):
        axes.invert_yaxis()
    write_figure(folder, "reading", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"{row['data']}, {row['mib']:,} MiB, {row['reader']}",
            f"{min(row['seconds'])} s, {row['cpu_seconds']} s of CPU; peak {row['peak_mib']} MiB, of which"
            f" {row['kept_mib']} are kept",
        )
        for row in result["rows"]
    ]
