"""Runs `consilium` as its command line does. A hospital's relay reaches it through a wiretap, kept in its home."""

from __future__ import annotations

import contextlib
from pathlib import Path

from consilium_cli.main import main
from consilium_client.config import HospitalSettings
from consilium_client.hospital import relay_link
from consilium_client.relay.process import RelayProcess
from wiretap import Wiretap

KEPT = "relay.tap"  # in the node's home


class TappedRelay(RelayProcess):
    def __init__(self, settings: HospitalSettings, socket_path: Path) -> None:
        there = socket_path.with_name("tap.sock")
        self._kept, self._tap = settings.home / KEPT, Wiretap.of_path(there, socket_path)
        super().__init__(settings, there)

    def __exit__(self, *given: object) -> None:
        super().__exit__(*given)
        with contextlib.suppress(OSError):
            self._tap.close()
        self._kept.write_bytes(b"\xff\x00".join(bytes(one.callee) for one in self._tap.conversations))


if __name__ == "__main__":
    vars(relay_link)["RelayProcess"] = TappedRelay
    main()
