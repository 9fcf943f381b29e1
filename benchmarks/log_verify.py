"""The judging of exports against one core's bare SHA-256 loop over the same lines, on one core and on more, and its memory.

    python benchmarks/log_verify.py [--entries 1000,100000,1000000] [--rounds 5] [--payload 600] [--length 50]

Two kinds of file: `run` is one long run, `all` a log of many runs of `--length` entries, four actors, each fifth entry with a cause,
a leaf for each run and a checkpoint for each hundred. A row is one file on one number of cores (those that the process may
use; `taskset -c 0` leaves one). A round times the loop and the judging after each other, so that what else the machine does
meets both; a ratio is the loop's time on one core by the judging's on all of them, by the clock, and in brackets by the time
of all processors together. The least of the rounds, the median and the best are printed. Peaks are of the judging process and
of the largest helper of it.
"""

import argparse
import base64
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factbook.domain.log.merkle import leaf_hash
from factbook.domain.log.notes import NoteKey, checkpoint_text, origin_of
from factbook.domain.log.runs import Leaf
from factbook.verify.chain import cause_digits
from factbook.verify.judges import audit, verify_run
from factbook.verify.notes import read_key
from factbook.verify.tree import GrowingRoot

TENANT = "acme"
ACTORS = ("user:ann", "agent:planner", "service:desk", "agent:clerk")
KINDS = ("user-message", "agent-message", "tool-call", "tool-result")
WORDS = "words and "
JUDGES = {"run": verify_run, "all": audit}


class Signer:
    """A key, and the notes it signs."""

    def __init__(self) -> None:
        self._private = Ed25519PrivateKey.generate()
        self._key = NoteKey("bench", self._private.public_key().public_bytes_raw())
        self.vkey = self._key.vkey

    def note(self, size: int, root: bytes) -> str:
        text = checkpoint_text(origin_of("bench", TENANT), size, root)
        return self._key.note(text, self._private.sign(text.encode()))


def entries_of(run: str, count: int, payload: int, actors: int, caused: int) -> Iterator[tuple[bytes, str]]:
    """The lines of a run and the hash of each entry; each `caused`-th names the one before as its cause."""
    before, last = "sha256:" + "0" * 64, ""
    for number in range(count):
        which = number % actors
        sealed = number % 2 == 0
        cause = last if caused and number % caused == caused - 1 else None
        held = (
            f'{{"alg":"A256GCM","ct":"{"A" * payload}","gen":1,"iv":"AAAAAAAAAAAAAAAA"}}'
            if sealed
            else f'{{"role":"user","text":"{WORDS * (payload // len(WORDS))}"}}'
        )
        last = f"{run}:{number}:0123456789abcdef{cause_digits(cause)}"
        text = (
            f'{{"actor":"{ACTORS[which]}","id":"{last}","kind":"{KINDS[which]}","payload":{held},'
            f'"prevHash":"{before}","runId":"{run}","scope":{{"projectId":"p","tenantId":"{TENANT}","threadId":"t"}},'
            f'"sequence":{number},"timestamp":"2026-01-01T{number // 3600_000_000:02d}:{number // 60_000_000 % 60:02d}:'
            f'{number // 1_000_000 % 60:02d}.{number % 1_000_000:06d}Z"}}'
        ).encode()
        before = "sha256:" + sha256(text).hexdigest()
        said = b"" if cause is None else b'"cause":' + json.dumps(cause).encode() + b","
        yield (
            b'{"h":"' + before.encode() + b'","f":"jcs-sha256-v1",' + said + b'"entry":' + text + b"}\n",
            before,
        )


def as_line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def leaf_line(leaf: Leaf, **more: Any) -> bytes:
    return as_line(
        {"leaf": leaf.index, "run": leaf.run_id, "seq": leaf.sequence, "head": leaf.head, "salt": leaf.salt}
        | more
    )


def write_run(path: Path, entries: int, payload: int) -> str:
    """One run with one checkpoint behind its last entry; the verifier key."""
    signer = Signer()
    head, body = "", path.with_suffix(".body")
    with body.open("wb") as file:
        for line, entry_hash in entries_of("run", entries, payload, 1, 0):
            file.write(line)
            head = entry_hash
    leaf = Leaf(0, "run", entries - 1, head, "00" * 16)
    with path.open("wb") as file:
        file.write(
            as_line({"format": "factbook-log-export-1", "kind": "run", "run": "run", "tenant": TENANT})
        )
        file.write(as_line({"checkpoint": signer.note(1, leaf_hash(leaf.data))}))
        file.write(as_line({"run": "run"}))
        with body.open("rb") as written:
            while chunk := written.read(1 << 20):
                file.write(chunk)
        file.write(leaf_line(leaf, proof=[]))
        file.write(as_line({"end": {"entries": entries, "leaves": 1, "lines": entries + 5}}))
    body.unlink()
    return signer.vkey


def write_all(path: Path, entries: int, payload: int, length: int) -> str:
    """A log of many runs; the verifier key."""
    signer, tree = Signer(), GrowingRoot()
    runs = max(1, entries // length)
    body = path.with_suffix(".body")
    with path.open("wb") as file, body.open("wb") as sections:
        file.write(as_line({"format": "factbook-log-export-1", "kind": "all", "tenant": TENANT}))
        lines = 1
        for index in range(runs):
            run = f"run-{base64.b16encode(sha256(b'%d' % index).digest()[:8]).decode().lower()}"
            sections.write(as_line({"run": run}))
            head = ""
            for line, entry_hash in entries_of(run, length, payload, len(ACTORS), 5):
                sections.write(line)
                head = entry_hash
            leaf = Leaf(index, run, length - 1, head, f"{index:032x}")
            sections.write(leaf_line(leaf))
            file.write(leaf_line(leaf))
            tree.add(leaf_hash(leaf.data))
            lines += 3 + length
            if index % 100 == 99 or index == runs - 1:
                file.write(as_line({"checkpoint": signer.note(index + 1, tree.root())}))
                lines += 1
        sections.flush()
        with body.open("rb") as written:
            while chunk := written.read(1 << 20):
                file.write(chunk)
        file.write(as_line({"end": {"entries": runs * length, "leaves": runs, "lines": lines + 1}}))
    body.unlink()
    return signer.vkey


def bare_loop(path: Path) -> None:
    with path.open("rb", buffering=1 << 16) as file:
        for line in file:
            sha256(line).digest()


def timed(action: Callable[[], None]) -> tuple[float, float]:
    """Seconds by the clock, and of processors, those of processes that were started and ended included."""
    clock, before = time.perf_counter(), processor_seconds()
    action()
    return time.perf_counter() - clock, processor_seconds() - before


def processor_seconds() -> float:
    spent = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


def judge(kind: str, path: Path, vkey: str, cores: int, rounds: int) -> dict[str, Any]:
    """In a process of its own: the ratios of each round and the peaks."""
    own = sorted(os.sched_getaffinity(0))[:cores]
    os.sched_setaffinity(0, own)
    key, ratios = read_key(vkey), []

    def verify() -> None:
        verdict = JUDGES[kind](path, key)
        assert verdict.holds, verdict

    bare_loop(path)  # the file is in the system's memory from here on
    best = 1e9
    for _ in range(rounds):
        bare, judged = timed(lambda: bare_loop(path)), timed(verify)
        ratios.append((bare[0] / judged[0], bare[1] / judged[1]))
        best = min(best, judged[0])
    peaks = [resource.getrusage(of).ru_maxrss for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {"ratios": ratios, "peaks": peaks, "seconds": best}


def row(kind: str, path: Path, entries: int, cores: int, seen: dict[str, Any]) -> str:
    clock, processors = ([each[which] for each in seen["ratios"]] for which in (0, 1))
    figures = "  ".join(f"{of(clock):4.2f} ({of(processors):4.2f})" for of in (min, statistics.median, max))
    own, helper = (kib / 1024 for kib in seen["peaks"])
    return (
        f"{kind:<4} {entries:>9,}  {path.stat().st_size / 1e6:>7.1f}  {cores:>5}  {entries / seen['seconds']:>9,.0f}  "
        f"{figures}  {own:>6.1f}  {helper:>6.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entries", default="1000,100000,300000")
    parser.add_argument("--payload", type=int, default=600, help="bytes of each payload's text")
    parser.add_argument("--length", type=int, default=50, help="entries of each run of a log of many")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", default=",".join(JUDGES))
    parser.add_argument("--judge", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.judge:
        kind, path, vkey, cores, rounds = arguments.judge
        print(json.dumps(judge(kind, Path(path), vkey, int(cores), int(rounds))))
        return
    print("                                              ratio by the clock (of processor time)    peak MB")
    print("kind   entries       MB  cores  entries/s  least        median       best           judge  helper")
    with tempfile.TemporaryDirectory() as folder:
        for kind in arguments.kinds.split(","):
            for entries in map(int, arguments.entries.split(",")):
                path = Path(folder) / "log.jsonl"
                if kind == "run":
                    vkey = write_run(path, entries, arguments.payload)
                else:
                    vkey = write_all(path, entries, arguments.payload, arguments.length)
                for cores in range(1, len(os.sched_getaffinity(0)) + 1):
                    words = ["--judge", kind, str(path), vkey, str(cores), str(arguments.rounds)]
                    done = subprocess.run(
                        [sys.executable, __file__, *words], stdout=subprocess.PIPE, check=True
                    )
                    print(row(kind, path, entries, cores, json.loads(done.stdout)), flush=True)


if __name__ == "__main__":
    main()
