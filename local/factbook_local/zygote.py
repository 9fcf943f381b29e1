"""The other side of `workers.py`: processes that import once and fork quickly.

One root imports what every function needs, and has the SDK read its service models once. It forks a template per
function, which takes on that function's environment and imports its module; a template forks workers, and a worker
handles one event at a time, as an execution environment of Lambda does. Nothing here starts a thread: a fork must
find one thread only.

Frames on a worker's socket: `>II`, the lengths of a JSON head and of a JSON body, then both. A worker says `TAKEN`
before it handles an event: one that ends without it has not begun, so another may.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import random
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from factbook_local import strict
from factbook_local.limits import LIMITS

_FRAME = struct.Struct(">II")
_LENGTH = struct.Struct(">I")
_PRELOADED = (
    "botocore.session",
    "botocore.handlers",
    "urllib3",
    "pydantic",
    "cryptography.hazmat.primitives.ciphers.aead",
    "aws_lambda_powertools",
    "rfc8785",
    "uuid",
    "hashlib",
    "decimal",
    "concurrent.futures",
)
_SERVICES = ("dynamodb", "s3", "kms", "sqs", "lambda")
_RESPONSE_LIMIT = LIMITS["invocation"].most

TAKEN = b"\x06"

Handler = Callable[[Any, Any], Any]


def _die_with_parent() -> None:
    """On Linux the kernel ends us when our parent ends; elsewhere the closed socket does, after the current event."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def receive_command(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """One command and the descriptors that came with it; None when the other side is gone."""
    head, fds, _, _ = socket.recv_fds(control, _LENGTH.size, 4)
    while head and len(head) < _LENGTH.size:
        head += control.recv(_LENGTH.size - len(head))
    if not head:
        return None
    size, body = _LENGTH.unpack(head)[0], b""
    while len(body) < size:
        more = control.recv(size - len(body))
        if not more:
            return None
        body += more
    return json.loads(body), fds


def send_command(control: socket.socket, command: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    body = json.dumps(command).encode()
    data = _LENGTH.pack(len(body)) + body
    sent = socket.send_fds(control, [data], fds) if fds else control.send(data)
    control.sendall(data[sent:])


def main() -> None:
    """The root: forks a template for each command."""
    control = socket.socket(fileno=int(sys.argv[1]))
    _preload(_PRELOADED)
    strict.install()
    models = _read_service_models()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while (received := receive_command(control)) is not None:
        function, fds = received
        if "shared" in function:
            os.environ.clear()
            os.environ.update(function["environment"])
            sys.path[:0] = function["paths"]
            _preload(function["shared"])
            if (clients := sys.modules.get("factbook.wiring.clients")) is not None:
                clients.sdk_session().register_component("data_loader", models)
            # What is shared stays to the end: a collection in a fork would look at it, and so copy its pages.
            gc.collect()
            gc.freeze()
            continue
        template_fd, log_fd = fds
        if os.fork() == 0:
            control.close()
            _run_template(socket.socket(fileno=template_fd), log_fd, function)
            os._exit(0)
        os.close(template_fd)
        os.close(log_fd)


def _preload(modules: Iterable[str]) -> None:
    """What does not import is left for the function that asks for it to report."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _read_service_models() -> Any:
    """What the SDK's clients are made of, read: a third of a second for each service, which forks then inherit."""
    import botocore.session

    session = botocore.session.get_session()
    for service in _SERVICES:
        session.create_client(service, region_name="us-east-1", endpoint_url="http://127.0.0.1:1")
    return session.get_component("data_loader")


def _run_template(control: socket.socket, log_fd: int, function: dict[str, Any]) -> None:
    """Become a function: its output, environment and path; then fork a worker for each command."""
    _die_with_parent()
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    os.close(log_fd)
    os.environ.clear()
    os.environ.update(function["environment"])
    time.tzset()
    sys.path[:0] = function["paths"]
    began = time.perf_counter()
    try:
        handler = _load(function["handler"])
        problem = None
    except BaseException as error:  # noqa: BLE001 - whatever a module raises while it is imported
        handler, problem = None, _error(error, "Runtime.ImportModuleError")
        traceback.print_exc()
    send_command(control, {"seconds": time.perf_counter() - began, "error": problem})
    gc.collect()
    gc.freeze()
    while (received := receive_command(control)) is not None:
        _, (worker_fd,) = received
        if os.fork() == 0:
            control.close()
            _work(socket.socket(fileno=worker_fd), function, handler, problem)
            os._exit(0)
        os.close(worker_fd)


def _load(path: str) -> Handler:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module.replace("/", ".")), name)  # type: ignore[no-any-return]


def _work(channel: socket.socket, function: dict[str, Any], handler: Handler | None, problem: Any) -> None:
    _die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    random.seed()
    stream = channel.makefile("rwb")
    _write(stream, {"pid": os.getpid()}, b"")
    while head := stream.read(_FRAME.size):
        size, length = _FRAME.unpack(head)
        meta, event = json.loads(stream.read(size)), stream.read(length)
        stream.write(TAKEN)
        stream.flush()
        answer, body = (
            ({"error": problem}, b"") if handler is None else _handle(handler, event, meta, function)
        )
        sys.stdout.flush()
        sys.stderr.flush()
        _write(stream, answer, body)


def _write(stream: Any, meta: dict[str, Any], body: bytes) -> None:
    head = json.dumps(meta).encode()
    stream.write(_FRAME.pack(len(head), len(body)) + head + body)
    stream.flush()


def _handle(
    handler: Handler, event: bytes, meta: dict[str, Any], function: dict[str, Any]
) -> tuple[dict[str, Any], bytes]:
    os.environ["_X_AMZN_TRACE_ID"] = meta["trace"]
    try:
        result = handler(json.loads(event), _context(meta, function))
        body = json.dumps(result, ensure_ascii=False).encode()  # as the runtimes since Python 3.12 do
    except Exception as error:  # noqa: BLE001 - the runtime reports whatever a handler raises
        traceback.print_exc()
        return {"error": _error(error)}, b""
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else 1)
    if len(body) > _RESPONSE_LIMIT:
        return {
            "error": {
                "errorType": "Function.ResponseSizeTooLarge",
                "errorMessage": (
                    f"Response payload size exceeded maximum allowed payload size ({_RESPONSE_LIMIT} bytes)."
                ),
            }
        }, b""
    return {}, body


def _context(meta: dict[str, Any], function: dict[str, Any]) -> Any:
    """The context object of the Python runtime, as far as functions read it."""
    deadline = meta["deadline"]
    return SimpleNamespace(
        aws_request_id=meta["request"],
        function_name=function["name"],
        function_version="$LATEST",
        invoked_function_arn=function["arn"],
        memory_limit_in_mb=str(function["memory"]),
        log_group_name=f"/aws/lambda/{function['name']}",
        log_stream_name=f"local/{os.getpid()}",
        identity=None,
        client_context=None,
        get_remaining_time_in_millis=lambda: max(0, int((deadline - time.time()) * 1000)),
    )


def _error(error: BaseException, kind: str | None = None) -> dict[str, Any]:
    return {
        "errorMessage": str(error),
        "errorType": kind or type(error).__name__,
        "stackTrace": traceback.format_tb(error.__traceback__),
    }


if __name__ == "__main__":
    main()
