"""The API of the tour: a shop's orders, page by page, on loopback; some pages are busy at first."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PAGES = 12
PAGE_SIZE = 50
BUSY = {3: (503, 2), 5: (429, 1), 7: (503, 3), 11: (429, 2)}
"""Pages that first answer so, so many times."""

_PEOPLE = [
    ("Ada", "GB"), ("Grace", "US"), ("Edsger", "NL"), ("Barbara", "US"), ("Tony", "GB"),
    ("Donald", "US"), ("Niklaus", "CH"), ("Frances", "US"), ("Leslie", "US"), ("Konrad", "DE"),
    ("Hedy", "AT"), ("Alan", "GB"), ("Radia", "US"), ("Carl", "DE"), ("Emmy", "DE"),
]  # fmt: skip
_PRODUCTS = {"lamp": 39.9, "chair": 119.0, "desk": 349.5, "kettle": 24.95, "radio": 64.0}


def orders(page: int) -> list[dict[str, object]]:
    """The same orders for the same page, always."""
    draw = random.Random(page)
    first = datetime(2026, 1, 1, tzinfo=UTC)
    found: list[dict[str, object]] = []
    for number in range(PAGE_SIZE):
        customer, country = draw.choice(_PEOPLE)
        product, price = draw.choice(list(_PRODUCTS.items()))
        placed = first + timedelta(minutes=draw.randrange(500_000))
        found.append(
            {
                "id": (page - 1) * PAGE_SIZE + number + 1,
                "customer": customer,
                "country": country,
                "product": product,
                "quantity": draw.randint(1, 5),
                "price": price,
                "placed_at": placed.isoformat(),
            }
        )
    return found


class Shop(ThreadingHTTPServer):
    """Counts the calls of each page, so that busy ones recover."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.calls: Counter[int] = Counter()
        self.lock = threading.Lock()

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, dict[str, object]]:
        if path == "/pages":
            return 200, {"pages": list(range(1, PAGES + 1))}
        word = query.get("page", [""])[0]
        if path != "/orders" or not word.isdigit() or not 1 <= int(word) <= PAGES:
            return 404, {"error": "there is no such page"}
        page = int(word)
        with self.lock:
            self.calls[page] += 1
            status, times = BUSY.get(page, (200, 0))
            if self.calls[page] <= times:
                return status, {"error": "busy, come back later"}
        return 200, {"page": page, "orders": orders(page)}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Shop)
        parts = urlsplit(self.path)
        status, body = self.server.answer(parts.path, parse_qs(parts.query))
        content = json.dumps(body).encode()
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silent: the run shows what happens."""


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The API on a free port while the block runs; gives its address."""
    server = Shop()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
