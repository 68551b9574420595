"""A drand chain of one's own key, and the relay that serves its rounds once they have started."""

from __future__ import annotations

import http.server
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from consilium_zk.constants import DRAND_DST
from consilium_zk.curve import from_eip2537
from consilium_zk.drand import DrandChain, round_message
from consilium_zk.tickets import SecretKey, _sign, generate_secret_key, public_key
from py_arkworks_bls12381 import G2Point, Scalar


@dataclass(frozen=True)
class OwnDrand:
    key: SecretKey
    chain: DrandChain
    relay: str  # a URL with {round}

    @property
    def public_key(self) -> str:
        """Compressed, hexadecimal, as relays give it."""
        return bytes((G2Point() * Scalar(self.key.reveal())).to_compressed_bytes()).hex()


@contextmanager
def own_drand(period: int) -> Iterator[OwnDrand]:
    key = generate_secret_key(secrets.token_bytes(32))
    chain = DrandChain(int(time.time()) - 1_000 * period, period, public_key(key))

    class Relay(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = int(self.path.rsplit("/", 1)[1])
            if time.time() < chain.start(number):  # nobody knows it yet
                self.send_error(425)
                return
            signature = bytes(from_eip2537(_sign(key, round_message(number), DRAND_DST)))
            body = json.dumps({"round": number, "signature": signature.hex()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield OwnDrand(key, chain, f"http://127.0.0.1:{server.server_port}/{{round}}")
    finally:
        server.shutdown()
        server.server_close()
