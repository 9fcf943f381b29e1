"""Verified entries per second against a bare SHA-256 loop over the same lines, and memory as files grow.

    python benchmarks/log_verify.py [--sizes 1000,100000,1000000] [--payload 600]

Each size is judged in a process of its own, so its peak memory is its own. Ratios are of one run on one machine.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factbook.domain.log.merkle import leaf_hash
from factbook.domain.log.notes import NoteKey, checkpoint_text, origin_of
from factbook.domain.log.runs import Leaf
from factbook.verify.judges import verify_run
from factbook.verify.notes import read_key

REPEATS = 3


def write_export(path: Path, entries: int, payload: int, *, sealed: bool) -> str:
    """An export of one run with one checkpoint behind its last entry; the verifier key."""
    private = Ed25519PrivateKey.generate()
    key = NoteKey("bench", private.public_key().public_bytes_raw())
    before = "sha256:" + "0" * 64
    count = 0
    body = path.with_suffix(".body")
    with body.open("wb") as file:
        for number in range(entries):
            held = (
                f'{{"alg":"A256GCM","ct":"{"A" * payload}","gen":1,"iv":"AAAAAAAAAAAAAAAA"}}'
                if sealed
                else f'{{"role":"user","text":"{"words and " * (payload // 10)}"}}'
            )
            text = (
                f'{{"actor":"agent:planner","id":"run:{number}:0123456789abcdef","kind":"user-message","payload":{held},'
                f'"prevHash":"{before}","runId":"run","scope":{{"projectId":"p","tenantId":"acme","threadId":"t"}},'
                f'"sequence":{number},"timestamp":"2026-01-01T{number // 3600_000_000:02d}:{number // 60_000_000 % 60:02d}:'
                f'{number // 1_000_000 % 60:02d}.{number % 1_000_000:06d}Z"}}'
            ).encode()
            before = "sha256:" + sha256(text).hexdigest()
            file.write(b'{"h":"' + before.encode() + b'","f":"jcs-sha256-v1","entry":' + text + b"}\n")
            count += 1
    leaf = Leaf(0, "run", count - 1, before, "00" * 16)
    text = checkpoint_text(origin_of("bench", "acme"), 1, leaf_hash(leaf.data))
    note = key.note(text, private.sign(text.encode()))
    lines = [
        {"format": "factbook-log-export-1", "kind": "run", "run": "run", "tenant": "acme"},
        {"checkpoint": note},
        {"run": "run"},
        {"leaf": 0, "run": "run", "seq": count - 1, "head": before, "salt": leaf.salt, "proof": []},
        {"end": {"entries": count, "leaves": 1, "lines": count + 5}},
    ]
    written = [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines]
    with path.open("wb") as file, body.open("rb") as entries_file:
        file.writelines(written[:3])
        while chunk := entries_file.read(1 << 20):
            file.write(chunk)
        file.writelines(written[3:])
    body.unlink()
    return key.vkey


def bare_loop(path: Path) -> None:
    with path.open("rb", buffering=1 << 16) as file:
        for line in file:
            sha256(line).digest()


def best(action: object) -> float:
    """The least processor time of several runs, in seconds."""
    assert callable(action)
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        action()
        times.append(time.process_time() - began)
    return min(times)


def judge(path: Path, vkey: str) -> None:
    """In a process of its own: the two times and the peak memory, as JSON."""
    key = read_key(vkey)

    def verify() -> None:
        verdict = verify_run(path, key)
        assert verdict.holds, verdict

    bare, verified = best(lambda: bare_loop(path)), best(verify)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"bare": bare, "verified": verified, "peakKiB": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--payload", type=int, default=600, help="bytes of each payload's text")
    parser.add_argument("--plain", action="store_true", help="plain payloads instead of sealed ones")
    parser.add_argument("--judge", nargs=2, metavar=("FILE", "VKEY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.judge:
        judge(Path(arguments.judge[0]), arguments.judge[1])
        return
    print(f"{'entries':>9}  {'MB':>7}  {'entries/s':>10}  {'SHA-256 loop':>12}  {'ratio':>5}  {'peak MB':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for size in map(int, arguments.sizes.split(",")):
            path = Path(folder) / "run.jsonl"
            vkey = write_export(path, size, arguments.payload, sealed=not arguments.plain)
            done = subprocess.run(
                [sys.executable, __file__, "--judge", str(path), vkey],
                capture_output=True,
                text=True,
                check=True,
            )
            seen = json.loads(done.stdout)
            print(
                f"{size:>9,}  {path.stat().st_size / 1e6:>7.1f}  {size / seen['verified']:>10,.0f}  "
                f"{size / seen['bare']:>12,.0f}  {seen['bare'] / seen['verified']:>5.2f}  {seen['peakKiB'] / 1024:>7.1f}"
            )


if __name__ == "__main__":
    main()
