"""Data keys that were encrypted for this import: opened with a private key that never leaves this machine."""

import json
from pathlib import Path

from factbook.adapters.portability.rsa_rewrapping import PrivateKey
from factbook.domain.errors import BadInput
from factbook.usecases.portability.exporting import bound_key
from factbook_cli.errors import UsageError
from factbook_cli.tenant_file import Damaged, Line


def unwrapped(path: Path, lines: list[Line], private: Path, tenant: str) -> list[bytes]:
    """The lines of data keys with the keys themselves, as an import sends them. Raises Damaged, UsageError."""
    try:
        key = PrivateKey(private.read_bytes())
    except OSError as error:
        raise UsageError(f"--unwrap-with {private} cannot be read: {error.strerror}.") from error
    except BadInput as error:
        raise UsageError(f"--unwrap-with {private}: {error.message}") from error
    if lines[-1].kind != "end":
        raise Damaged(path, lines[-1].number, "the file ends before its end: it is cut")
    return [_opened(path, line, key, tenant) for line in lines if line.kind == "wrapped"]


def _opened(path: Path, line: Line, key: PrivateKey, tenant: str) -> bytes:
    try:
        plain = key.open(bytes.fromhex(line.value["data"]), bound_key(tenant, line.value))
    except (LookupError, TypeError, ValueError) as error:
        raise Damaged(
            path,
            line.number,
            "the data key does not open: it was encrypted for another key, or is another one's",
        ) from error
    return json.dumps({"wrapped": line.value | {"data": plain.hex()}}, ensure_ascii=False).encode()
