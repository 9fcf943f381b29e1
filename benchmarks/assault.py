"""Hostile requests against the local service: `python benchmarks/assault.py [--requests 10000] [--seed 1]`.

Raw bytes over sockets: noise, mutated requests, broken JSON, deep nesting, invalid UTF-8, huge headers, wrong methods,
wrong lengths, compressed bombs, wrong types in known fields. Reported and required: no answer of 500 or above, an
answer or a closed connection for each, a service that answers well all along, and memory of the gateway and the
functions that stays where it was after the first tenth. Exit code 1 otherwise.
"""

import argparse
import contextlib
import gzip
import http.client
import json
import os
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from factbook_local.testing import Ready, descendants, running

SECONDS = 60.0
GROWTH = 1.3
"""What the memory may be at the end, in parts of what it was after the first tenth."""

EMULATOR, PAGE = b"dataplane.emulator", os.sysconf("SC_PAGE_SIZE")
ROOT = Path(__file__).parents[1]
WORDS = [
    "",
    "a",
    "null",
    "\u0000",
    "ü",
    "🜁",
    "../",
    "%2F",
    "%",
    "%zz",
    "+",
    "' or 1=1",
    "{}",
    "|",
    "~",
    "a" * 300,
]
VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 2**63, 10**400, "", "x", "\ud800", [], [[]], {}, {"a": 1}, "x" * 5000, [None] * 50,
]  # fmt: skip
FIELDS = [
    "type", "scope", "content", "contentHash", "contentRef", "retention", "source", "subjects", "validFrom", "key",
    "expectVersion", "items", "entries", "afterSequence", "actor", "admin", "projects", "expiresAt", "mode", "query",
    "limit", "after", "intents", "types", "ceilings", "size", "sha256", "factId", "payload", "kind", "__proto__",
]  # fmt: skip
QUERIES = [
    "limit",
    "cursor",
    "type",
    "scope",
    "scopeKind",
    "scopeId",
    "inherit",
    "asOf",
    "version",
    "expectVersion",
    "x",
]


@dataclass
class Findings:
    """What came back: answers by status (0: closed without one), and the requests that were answered 500 or above."""

    statuses: Counter[int] = field(default_factory=Counter)
    broken: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    silent: Counter[str] = field(default_factory=Counter)
    """Requests that ended without an answer, by kind."""
    unanswered_health: int = 0
    memory: list[float] = field(default_factory=list)
    """Megabytes after each tenth."""

    @property
    def growth(self) -> float:
        return self.memory[-1] / self.memory[0]

    @property
    def good(self) -> bool:
        return not self.broken and not self.unanswered_health and self.growth <= GROWTH


class Assailant:
    """Makes hostile requests from a seed; `token` is a valid one, so that they get past the door."""

    def __init__(self, token: str, seed: int) -> None:
        self.random = random.Random(seed)
        self._token = token
        described = json.loads((ROOT / "openapi.json").read_text())
        self._routes = [
            (method.upper(), path) for path, item in described["paths"].items() for method in item
        ]
        self._kinds: list[Callable[[], bytes]] = [
            self.noise, self.mutated, self.mutated, self.broken_json, self.deep, self.no_utf8, self.huge_headers,
            self.wrong_method, self.wrong_length, self.bomb, self.wrong_types, self.wrong_types, self.odd_query,
        ]  # fmt: skip

    def request(self) -> tuple[str, bytes]:
        kind = self.random.choice(self._kinds)
        return kind.__name__, kind()

    def noise(self) -> bytes:
        return self.random.randbytes(self.random.randint(1, 2000))

    def mutated(self) -> bytes:
        raw = bytearray(self.wrong_types() if self.random.random() < 0.5 else self.odd_query())
        for _ in range(self.random.randint(1, 8)):
            at = self.random.randrange(len(raw))
            match self.random.randrange(4):
                case 0:
                    raw[at] = self.random.randrange(256)
                case 1:
                    raw[at:at] = self.random.randbytes(self.random.randint(1, 20))
                case 2:
                    del raw[at : at + self.random.randint(1, 20)]
                case 3:
                    raw[at:at] = raw[at : at + 40]
        return bytes(raw)

    def broken_json(self) -> bytes:
        text = json.dumps(self._body())
        pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            '"',
            "\\",
            "NaN",
            "Infinity",
            "1e999999",
            "-",
            "0x1",
            '{"a":1,"a":2}',
        ]
        for _ in range(self.random.randint(1, 4)):
            at = self.random.randrange(len(text) + 1)
            text = text[:at] + self.random.choice(pieces) + text[at + self.random.randrange(3) :]
        return self._post(text.encode())

    def deep(self) -> bytes:
        depth = self.random.choice([30, 33, 100, 5000, 200_000])
        opened, closed = self.random.choice([(b"[", b"]"), (b'{"a":', b"}")])
        inner = opened * depth + b"1" + closed * depth
        whole = self.random.random() < 0.3
        return self._post(inner if whole else b'{"type": "t", "content": ' + inner + b"}")

    def no_utf8(self) -> bytes:
        bad = self.random.choice(
            [b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\x00"]
        )
        if self.random.random() < 0.4:
            return self._raw("GET", "/v1/memory/facts/x").replace(b"facts/x", b"facts/" + bad)
        return self._post(json.dumps(self._body()).encode().replace(b'"', b'"' + bad, 3))

    def huge_headers(self) -> bytes:
        if self.random.random() < 0.5:
            lines = {"X-Long": "x" * self.random.choice([8_000, 11_000, 70_000, 1_000_000])}
        else:
            lines = {f"X-{number}": "y" * 50 for number in range(self.random.choice([50, 200, 2000]))}
        return self._raw("GET", "/v1/memory/facts", headers=lines)

    def wrong_method(self) -> bytes:
        methods = ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT", "get", "FOO", "G\tT", "", "A" * 500]
        body = json.dumps(self._body()).encode() if self.random.random() < 0.5 else b""
        return self._raw(self.random.choice(methods), self._path(), body)

    def wrong_length(self) -> bytes:
        raw = self._post(json.dumps(self._body()).encode())
        length = self.random.choice([b"-1", b"0", b"3", b"99999999999999999999", b"x", b"1, 2", b"+4", b""])
        if self.random.random() < 0.5:
            return raw.replace(b"Content-Length: ", b"Content-Length: " + length + b"\r\nX-Was: ")
        chunks = self.random.choice(
            [b"ffffffff\r\nx", b"zz\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"-1\r\n\r\n", b"1\r\nab"]
        )
        return raw.partition(b"\r\n\r\n")[0] + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks

    def bomb(self) -> bytes:
        filling = (
            b'{"type": "t", "content": "' + b"0" * self.random.choice([10_000, 3_000_000, 20_000_000]) + b'"}'
        )
        encoding = self.random.choice(["gzip", "deflate", "br", "gzip, gzip"])
        return self._post(gzip.compress(filling, 1), {"Content-Encoding": encoding})

    def wrong_types(self) -> bytes:
        method, path = self.random.choice(self._routes)
        body = b"" if method == "GET" else json.dumps(self._body()).encode("utf-8", "surrogatepass")
        return self._raw(method, self._filled(path), body)

    def odd_query(self) -> bytes:
        method, path = self.random.choice(self._routes)
        pairs = [
            f"{self.random.choice(QUERIES)}={self.random.choice([*WORDS, '1', '2026-01-01', '{}'])}"
            for _ in range(self.random.randint(1, 4))
        ]
        text = "&".join(pairs)
        query = text if self.random.random() < 0.3 else quote(text, safe="&=%+")
        return self._raw(method, self._filled(path) + "?" + query)

    def _body(self) -> Any:
        names = self.random.sample(FIELDS, self.random.randint(0, 6))
        body: dict[str, Any] = {name: self._value() for name in names}
        if self.random.random() < 0.4:
            body |= {"type": "note", "content": self._value()}
        return body if self.random.random() < 0.9 else self._value()

    def _value(self) -> Any:
        value = self.random.choice(VALUES)
        if self.random.random() < 0.2:
            value = {self.random.choice(FIELDS): value, self.random.choice(WORDS): self.random.choice(VALUES)}
        return [value] if self.random.random() < 0.1 else value

    def _path(self) -> str:
        return self._filled(self.random.choice(self._routes)[1])

    def _filled(self, path: str) -> str:
        return "/".join(
            quote(self.random.choice(WORDS) or "x", safe="") if part.startswith("{") else part
            for part in path.split("/")
        )

    def _post(self, body: bytes, headers: dict[str, str] | None = None) -> bytes:
        posts = [path for method, path in self._routes if method in ("POST", "PUT")]
        return self._raw("POST", self._filled(self.random.choice(posts)), body, headers)

    def _raw(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
        sent = {"Host": "localhost", "Content-Length": str(len(body)), "Connection": "close"}
        sent["Content-Type"] = self.random.choice(
            ["application/json", "text/plain", "image/png", "multipart/form-data"]
        )
        if self.random.random() < 0.9:
            sent["Authorization"] = f"Bearer {self._token}"
        if self.random.random() < 0.3:
            sent["Idempotency-Key"] = self.random.choice(
                [*(word for word in WORDS if word.isprintable()), "k" * 5000]
            )
        lines = [
            f"{method} {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in (sent | (headers or {})).items()),
        ]
        return "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + body


UNFINISHED = {"noise", "mutated", "wrong_length"}
"""Requests that may never end: the service must not wait for the rest once the sender has closed its side."""


def exchange(ready: Ready, request: bytes, *, finished: bool) -> bytes:
    """Send bytes as they are; what came back until the connection was closed."""
    where = urlsplit(ready.url)
    answer = b""
    with socket.create_connection((where.hostname, where.port), SECONDS) as connection:
        try:
            connection.sendall(request)
            if not finished:
                connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                answer += chunk
        except (ConnectionError, BrokenPipeError):
            pass  # refused while it was still being sent; what was answered before counts
    return answer


def status_of(answer: bytes) -> int:
    words = answer.split(b" ", 2)
    return int(words[1]) if answer.startswith(b"HTTP/1.") and words[1].isdigit() else 0


def healthy(ready: Ready) -> bool:
    connection = http.client.HTTPConnection(urlsplit(ready.url).netloc, timeout=SECONDS)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {next(iter(ready.tokens.values()))}"}
        connection.request("GET", "/v1/memory/status", headers=headers)
        answer = connection.getresponse()
        return answer.status == 200 and bool(json.loads(answer.read())["search"])


def resident_megabytes(ready: Ready) -> float:
    """Of the gateway and the functions; the emulator keeps what was written, which is no leak."""
    size = 0
    for pid in (ready.process.pid, *descendants(ready.process.pid)):
        with contextlib.suppress(OSError):  # it ended meanwhile
            where = Path("/proc") / str(pid)
            if EMULATOR not in (where / "cmdline").read_bytes():
                size += int((where / "statm").read_text().split()[1]) * PAGE
    return size / 1e6


def assail(ready: Ready, requests: int, seed: int) -> Findings:
    """Send hostile requests one after another."""
    found = Findings()
    assailant = Assailant(next(iter(ready.tokens.values())), seed)
    for number in range(1, requests + 1):
        kind, request = assailant.request()
        answer = exchange(ready, request, finished=kind not in UNFINISHED)
        status = status_of(answer)
        found.kinds[kind] += 1
        found.statuses[status] += 1
        if status == 0:
            found.silent[kind] += 1
        if status >= 500:
            found.broken.append((status, request[:600], answer[-300:]))
        if number % max(1, requests // 10) == 0:
            found.unanswered_health += not healthy(ready)
            found.memory.append(resident_megabytes(ready))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Hostile requests against the local service.")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as ready:
        began = time.monotonic()
        found = assail(ready, arguments.requests, arguments.seed)
    print(
        f"{arguments.requests} requests in {time.monotonic() - began:.0f} s: {dict(sorted(found.statuses.items()))}"
    )
    print(f"by kind: {dict(found.kinds)}; closed without an answer: {dict(found.silent)}")
    print(f"memory of gateway and functions after each tenth (MB): {[round(each) for each in found.memory]}")
    for status, request, answer in found.broken[:20]:
        print(status, request, answer)
    print(
        f"{len(found.broken)} answers of 500 or above, {found.unanswered_health} times not well, x{found.growth:.2f}"
    )
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
