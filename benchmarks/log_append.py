"""A warm append against a bare conditional `put_item` of the very same items, alternating, on the local data plane.

python benchmarks/log_append.py [--entries 300]
"""

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entries", type=int, default=300)
    arguments = parser.parse_args()
    from support import emulators
    from support.logs import LogService
    from support.principals import principal

    from factbook.adapters.dynamodb.client import to_item
    from factbook.domain.scope import Scope
    from factbook.usecases.log.appending import Request, append_entries

    with emulators.ministack() as aws, tempfile.TemporaryDirectory() as folder:
        log_service = LogService(aws, Path(folder))
        log, client = log_service.services.logs.log, aws.client("dynamodb")
        admin = principal(log_service.tenant, "admin", admin=True)
        print(f"{'payload':>8}  {'scope':>6}  {'append':>8}  {'put_item':>8}  {'ratio':>5}   (medians, ms)")
        for size in (200, 2000):
            for name, scope in (
                ("plain", Scope(tenantId=log_service.tenant)),
                ("sealed", Scope(tenantId=log_service.tenant, userId="u")),
            ):
                run = f"{name}-{size}"
                append_entries(log, admin, run, [Request("tool-call", "warm", scope=scope)])
                appends, puts = [], []
                for number in range(arguments.entries):
                    began = time.perf_counter()
                    append_entries(log, admin, run, [Request("tool-call", {"n": number, "text": "x" * size})])
                    appends.append(time.perf_counter() - began)
                    stored = log.store.entry(log_service.tenant, run, number + 1)
                    assert stored is not None
                    item = {
                        "pk": f"bare|{uuid.uuid4()}",
                        "sk": number,
                        "j": stored.text,
                        "h": stored.entry_hash,
                    }
                    began = time.perf_counter()
                    client.put_item(
                        TableName=log_service.settings.log_table,
                        Item=to_item(item),
                        ConditionExpression="attribute_not_exists(pk)",
                        ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    )
                    puts.append(time.perf_counter() - began)
                append, put = statistics.median(appends), statistics.median(puts)
                print(f"{size:>8}  {name:>6}  {append * 1e3:>8.2f}  {put * 1e3:>8.2f}  {append / put:>5.2f}")


if __name__ == "__main__":
    main()
