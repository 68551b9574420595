"""A task of real nodes beside plain Flower's: what is counted of processes, and a small task from begin to end."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from consilium_zk.constants import BYTES_PER_BLOB

from bench.e2e import hundred
from bench.process_watch import ProcessWatch, Seen, children_by

MEMORY_MIB, CPU_S = 64, 0.5
# Its child ends before the last look, and it keeps memory.
PARENT = f"""
import subprocess, sys, time
subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < {CPU_S}: pass"], check=True)
kept = bytes(range(256)) * ({MEMORY_MIB} << 12)
print("done", flush=True)
time.sleep(60)
"""


def test_ended_children_count_and_memory_is_that_of_the_whole_tree() -> None:
    words = {"some": "import subprocess, sys, time", "none": "no such word"}
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    try:
        with ProcessWatch(lambda: children_by(words)) as watch:
            begin = time.monotonic()
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"done\n"
            look = len(watch.seen)
            while len(watch.seen) < look + 2:
                time.sleep(0.05)
        cpu_s, peaks = watch.cpu_s(begin, time.monotonic()), watch.peaks_mib()
    finally:
        parent.kill()
        parent.communicate()
    assert set(cpu_s) == {"some"}
    assert cpu_s["some"] >= CPU_S
    assert peaks["all"] == peaks["some"] > MEMORY_MIB


def test_a_span_has_the_time_between_its_looks() -> None:
    watch = ProcessWatch(lambda: {"own": os.getpid()})
    watch.seen = [Seen(float(at), {"own": spent}, {}) for at, spent in enumerate((1.0, 3.0, 6.0))]
    assert watch.cpu_s(0.5, 1.5) == {"own": 3.0}
    assert watch.cpu_s(0.0, 99.0) == {"own": 5.0}


@pytest.mark.deep
def test_a_small_model_goes_through_both() -> None:
    told = hundred.measure(quick=True)
    own, plain = told["sides"]["consilium"], told["sides"]["plain"]
    assert own["parameters"] == plain["parameters"]
    assert own["numbers"] < own["parameters"] / 10
    assert own["sent_bytes"] == own["blobs"] * BYTES_PER_BLOB
    assert len(own["rounds"]) == len(plain["rounds"]) == hundred.ROUNDS
    for one in own["rounds"]:
        assert one["blobs_on_chain"] >= own["blobs"]
        assert 0 < one["gas_commit_each"] < one["gas"]
        assert 0 < one["cpu_s"]["hospital"] < one["cpu_s"]["all"]
