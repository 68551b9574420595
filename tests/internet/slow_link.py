"""A bad line in user space, for kernels without netem: frames between a virtual cable's end and a TAP device.

`python slow_link.py CABLE TAP DELAY JITTER LOSS RATE`, in the namespace of both: seconds, seconds, a share, bytes a
second. Each direction is a line of its own: a queue of at most `QUEUE` seconds at RATE, then DELAY and by chance up to
JITTER more or less. Frames stay in order, as they do on a line.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
EVERY_PROTOCOL = 3  # ETH_P_ALL
OUTGOING = 4  # PACKET_OUTGOING: what this program sent itself
QUEUE = 1.0  # seconds; what would wait for longer is dropped, as by a router
LONGEST_FRAME = 65_600


@dataclass
class Line:
    """One direction. Times are seconds of any clock that goes on."""

    delay: float
    jitter: float
    loss: float
    rate: float
    chance: random.Random = field(default_factory=random.Random)
    _free: float = 0.0  # when the last byte taken so far has left
    _last: float = 0.0  # when the last frame taken so far arrives

    def arrival(self, now: float, length: int) -> float | None:
        """When a frame that is handed over now arrives; None: never."""
        begins = max(now, self._free)
        if begins - now > QUEUE or self.chance.random() < self.loss:
            return None
        self._free = begins + length / self.rate
        varied = self.delay + self.chance.uniform(-self.jitter, self.jitter)
        self._last = max(self._last, self._free + max(0.0, varied))
        return self._last


def carry(ends: list[tuple[int, Callable[[], bytes | None], Callable[[bytes], object], Line]]) -> None:
    """For ever. Of each end: its descriptor, a read of one frame, a write to the other end, and the line to there."""
    waiting: list[tuple[float, int, Callable[[bytes], object], bytes]] = []
    count = 0
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select([end[0] for end in ends], [], [], timeout)
        now = time.monotonic()
        for descriptor, read, write, line in ends:
            if descriptor in ready and (frame := read()) is not None:
                arrival = line.arrival(now, len(frame))
                if arrival is not None:
                    count += 1
                    heapq.heappush(waiting, (arrival, count, write, frame))
        while waiting and waiting[0][0] <= now:
            _, _, write, frame = heapq.heappop(waiting)
            try:
                write(frame)
            except OSError:
                continue  # the cable is cut: the frame is lost


def main(cable: str, tap: str, *settings: str) -> None:
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", tap.encode(), IFF_TAP | IFF_NO_PI))
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    raw.bind((cable, EVERY_PROTOCOL))

    def from_cable() -> bytes | None:
        try:
            frame, sender = raw.recvfrom(LONGEST_FRAME)
        except OSError:
            return None  # it is cut
        return None if sender[2] == OUTGOING else frame

    delay, jitter, loss, rate = map(float, settings)
    carry([
        (raw.fileno(), from_cable, lambda frame: os.write(device, frame), Line(delay, jitter, loss, rate)),
        (device, lambda: os.read(device, LONGEST_FRAME), raw.send, Line(delay, jitter, loss, rate)),
    ])  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
