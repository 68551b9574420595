"""A whole task of masks on folders of volumes: sums under masks, committees that judge by Dice, and pay."""

from __future__ import annotations

from pathlib import Path

import consilium
import numpy as np
import pytest
from nifti_files import PATIENT, nifti, packed, write_cases

TASK = """
name = "who has a lesion where"
[data]
kind = "images"
height = 16
width = 16
window = { low = 1, high = 99 }
question = { kind = "segmentation", classes = ["background", "lesion"] }
[model]
name = "unet"
widths = [4, 8]
[training]
epochs = 3
batch_size = 8
learning_rate = 0.01
optimizer = "adamw"
[rounds]
rounds = 4
min_hospitals = 3
max_hospitals = 3
[judging]
metric = "dice"
seats = 2
max_voters = 2
min_reveals = 1
"""


def site(folder: Path, seed: int, scale: float, cases: int = 4) -> Path:
    random, files = np.random.default_rng(seed), dict[str, bytes]()
    for at in range(cases):
        values, mask = random.normal(0, 1, (16, 16, 8)), np.zeros((16, 16, 8), np.uint8)
        for slice_ in range(1, 7):
            y, x = random.integers(0, 10, 2)
            mask[y : y + 6, x : x + 6, slice_] = 1
        values = np.rint(scale * (100 + 10 * values + 40 * mask)).astype(np.int16)
        files |= {f"imagesTr/{at}_0000.nii.gz": packed(nifti(values, texts=PATIENT)), f"labelsTr/{at}.nii": nifti(mask)}
    return write_cases(folder, files)


def test_three_hospitals_learn_masks_and_are_paid(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    task = tmp_path / "task.toml"
    task.write_text(TASK)
    sites = {f"h{at}": site(tmp_path / f"h{at}", at, scale) for at, scale in enumerate((1, 3, 0.5))}
    voters = {f"v{at}": site(tmp_path / f"v{at}", 10 + at, 2) for at in range(2)}
    found = consilium.simulate(consilium.Task.read(task), sites=sites, voters=voters)
    played = found.details.rounds
    assert len(played) == 4
    assert [one.settlement.accepted for one in played] == [1] * 4
    assert found.metrics.loc["together", "dice"] > max(0.6, found.metrics.loc["start", "dice"] + 0.2)
    assert list(found.metrics.columns) == ["dice", "accuracy", "log_loss"]
    said = capfd.readouterr()
    written = [said.out, said.err, str(found.as_json())]
    assert not any(value in one for value in PATIENT.values() for one in written)
