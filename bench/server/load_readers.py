"""Readers of the HTTP API, as dashboards in browsers are: a program of its own, which `load.py` starts.

Each reader holds a stream of events, and looks at one page after the other: all that a page shows is asked for at once,
with the validators of what it has seen before, and then it thinks. Readers come from addresses of their own, as behind
a proxy, so that the server's limits are those of many people and not of one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import aiohttp

THINK = (1.0, 2.0)  # seconds between two pages
ARRIVAL = 5.0  # seconds over which readers come
PATIENCE = 60.0  # seconds for an answer
SEEN_AT_ONCE = 20  # rows of a list that are on the screen
PAGES = ("home", "task", "round", "nodes", "node", "payments")


@dataclass
class Seen:
    """What all readers saw. Times are seconds since the epoch."""

    asked: list[tuple[float, str, int, float]] = field(default_factory=list)  # when, route, status, seconds
    told: list[tuple[float, int]] = field(default_factory=list)  # when, block
    reorgs: int = 0
    errors: list[str] = field(default_factory=list)


class Reader:
    def __init__(self, number: int, url: str, session: aiohttp.ClientSession, seen: Seen) -> None:
        self._url, self._session, self._seen = url, session, seen
        self._headers = {"X-Forwarded-For": f"10.0.{number // 250}.{number % 250 + 1}", "Accept-Encoding": "identity"}
        self._random = random.Random(number)
        self._kept: dict[str, tuple[str, bytes]] = {}  # validator and answer by path, as a browser's cache

    async def ask(self, route: str, path: str) -> object:
        headers = dict(self._headers)
        if path in self._kept:
            headers["If-None-Match"] = self._kept[path][0]
        began, at = time.perf_counter(), time.time()
        try:
            async with self._session.get(self._url + path, headers=headers) as answer:
                raw, status = await answer.read(), answer.status
                tag = answer.headers.get("ETag", "")
        except (aiohttp.ClientError, TimeoutError) as error:
            self._seen.errors.append(f"{route}: {type(error).__name__}")
            return None
        self._seen.asked.append((at, route, status, time.perf_counter() - began))
        if status == 304:
            raw = self._kept[path][1]
        elif status == 200:
            self._kept[path] = (tag, raw)
        else:
            self._seen.errors.append(f"{route}: {status}")
            return None
        return json.loads(raw)

    async def read(self) -> None:
        """Pages in a random order, forever."""
        await asyncio.sleep(self._random.uniform(0, ARRIVAL))
        stream = asyncio.create_task(self._listen())
        try:
            while not stream.done():
                await getattr(self, f"_{self._random.choice(PAGES)}")()
                await asyncio.sleep(self._random.uniform(*THINK))
            await stream
        finally:
            stream.cancel()

    async def _home(self) -> None:
        await asyncio.gather(
            self.ask("/v1/network", "/v1/network"), self.ask("/v1/tasks", f"/v1/tasks?limit={SEEN_AT_ONCE}")
        )

    async def _task(self) -> None:
        await asyncio.gather(
            self.ask("/v1/tasks/{task}", "/v1/tasks/1"),
            self.ask("/v1/tasks/{task}/rounds", f"/v1/tasks/1/rounds?limit={SEEN_AT_ONCE}"),
        )

    async def _round(self) -> None:
        rounds = await self.ask("/v1/tasks/{task}/rounds", f"/v1/tasks/1/rounds?limit={SEEN_AT_ONCE}")
        numbers = [one["round"] for one in rounds["items"]] if isinstance(rounds, dict) else []
        if numbers:
            # The one that runs, mostly; now and then an earlier one.
            number = numbers[0] if self._random.random() < 0.8 else self._random.choice(numbers)
            await self.ask("/v1/tasks/{task}/rounds/{round}", f"/v1/tasks/1/rounds/{number}")

    async def _nodes(self) -> None:
        await self.ask("/v1/nodes", f"/v1/nodes?limit={SEEN_AT_ONCE}")

    async def _node(self) -> None:
        nodes = await self.ask("/v1/nodes", f"/v1/nodes?limit={SEEN_AT_ONCE}")
        if isinstance(nodes, dict) and nodes["items"]:
            node = self._random.choice(nodes["items"])
            path = f"/v1/nodes/{node['node']}/{node['role']}"
            await asyncio.gather(
                self.ask("/v1/nodes/{node}/{role}", path),
                self.ask("/v1/nodes/{node}/{role}/history", f"{path}/history"),
            )

    async def _payments(self) -> None:
        await self.ask("/v1/payments", f"/v1/payments?limit={SEEN_AT_ONCE}")

    async def _listen(self) -> None:
        """Until the stream ends, which it should not."""
        patience = aiohttp.ClientTimeout(total=None, sock_read=PATIENCE)
        try:
            async with self._session.get(f"{self._url}/v1/events", headers=self._headers, timeout=patience) as answer:
                if answer.status != 200:
                    self._seen.errors.append(f"/v1/events: {answer.status}")
                    return
                name = ""
                async for line in answer.content:
                    if line.startswith(b"event: "):
                        name = line[7:].strip().decode()
                        self._seen.reorgs += name == "reorg"
                    elif line.startswith(b"data: ") and name == "chain":
                        self._seen.told.append((time.time(), int(json.loads(line[6:])["block"])))
        except (aiohttp.ClientError, TimeoutError) as error:
            self._seen.errors.append(f"/v1/events: {type(error).__name__}")
            return
        self._seen.errors.append("/v1/events: ended")


async def read_for(url: str, readers: int, seconds: float) -> Seen:
    seen = Seen()
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
    patience = aiohttp.ClientTimeout(total=PATIENCE)
    async with aiohttp.ClientSession(connector=connector, timeout=patience) as session:
        tasks = [asyncio.create_task(Reader(number, url, session, seen).read()) for number in range(readers)]
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("readers", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    seen = asyncio.run(read_for(given.url, given.readers, given.seconds))
    given.output.write_text(json.dumps(asdict(seen)))


if __name__ == "__main__":
    main()
