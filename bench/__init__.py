"""Measurements. Those that drive whole networks use what the tests start them with."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
