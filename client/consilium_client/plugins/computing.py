"""The process that computes one plug-in. `programs.confined` starts it, and its requests come from there.

Arguments: as of `programs.computing`, but it computes on the CPU; then the plug-in's group. The variable READS names
the file or folder that a reader may read. Files out of reach come first, then libraries, then the list of system calls.
Only then does it read which plug-in is wanted, hold its files against their digest, and import it. So this list allows
reading files, and Landlock bounds which.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

# Libraries with threads are imported after Landlock has begun.
from consilium_client.plugins.landlock import read_only, readable, require_linux
from consilium_client.programs.confinement import confine_reader, end_with, goes_first, pipes


def main() -> None:
    parent, memory, group = int(sys.argv[1]), int(sys.argv[2]), sys.argv[5]
    requests, answers = pipes()
    sys.dont_write_bytecode = True
    tempfile.tempdir = os.environ["TORCHINDUCTOR_CACHE_DIR"] = "/"  # torch asks as it loads; nothing is written
    own = {Path(os.environ["CONSILIUM_READS"])} if group == "readers" else set()
    fault: Exception | None = None
    try:
        require_linux()
        end_with(parent)
        held = goes_first()
        read_only(readable() | own)
    except Exception as error:
        fault = error
    from consilium_client.programs import serving
    from consilium_client.programs.frames import send

    if group == "models":
        from consilium_client.plugins import modelling as served
    else:
        from consilium_client.plugins import calling as served  # type: ignore[no-redef]
    try:
        if fault is not None:
            raise fault
        served.rehearse()
        confine_reader(held, memory)
        held.close()
    except Exception as error:
        send(answers, serving.fault(error))
        raise
    serving.serve(requests, answers, served.read)


if __name__ == "__main__":
    main()
