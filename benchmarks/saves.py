"""Saves of the data plane alone: `python benchmarks/saves.py [--items 1000 10000]`.

Writes items of 1 KB as fast as the emulator takes them, 25 at a time: harder than the service can ask for. Then one more
write with all of them there (a save costs what changed, not what there is), a SIGKILL, and the time until it serves again.
"""

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

from factbook_local.clients import Clients
from factbook_local.dataplane.process import DataPlaneProcess, control

TABLE = "items"


def measure(count: int, file: Path) -> str:
    plane = DataPlaneProcess(file=file, expiring={})
    plane.wait_until_serving()
    dynamodb = Clients(plane.url).dynamodb
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    began = time.perf_counter()
    for start in range(0, count, 25):
        items = [{"pk": {"S": f"k{number}"}, "x": {"S": "y" * 1000}} for number in range(start, start + 25)]
        dynamodb.batch_write_item(RequestItems={TABLE: [{"PutRequest": {"Item": item}} for item in items]})
    seconds = time.perf_counter() - began
    control(plane.url, "save")
    saves = control(plane.url, "saves")
    dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": "one more"}})
    began = time.perf_counter()
    control(plane.url, "save")
    one = time.perf_counter() - began
    os.kill(plane.pid, signal.SIGKILL)
    plane.stop()
    began = time.perf_counter()
    plane = DataPlaneProcess(file=file, expiring={})
    plane.wait_until_serving()
    restored = time.perf_counter() - began
    found = sum(
        page["Count"] for page in Clients(plane.url).dynamodb.get_paginator("scan").paginate(TableName=TABLE)
    )
    plane.stop()
    if found != count + 1:
        raise SystemExit(f"{count + 1 - found} items are lost")
    return (
        f"{count} items at {count / seconds:.0f}/s: longest of {saves['count']} saves {saves['longestSeconds'] * 1000:.0f} ms, "
        f"of which the service stood still {saves['cutSeconds'] * 1000:.0f} ms; one write more {one * 1000:.0f} ms; "
        f"serving again after a kill in {restored:.1f} s; {file.stat().st_size / 1e6:.1f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, nargs="+", default=[1_000, 10_000], help="multiples of 25")
    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}")
    for count in parser.parse_args().items:
        with tempfile.TemporaryDirectory() as folder:
            print(measure(count, Path(folder) / "state.sqlite"))


if __name__ == "__main__":
    main()
