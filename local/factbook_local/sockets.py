"""Listening sockets that are bound before anything is started on them."""

import socket


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1; port 0: a free one. Raises OSError where the port is taken.

    Accepted connections inherit the option: without it an answer's body waits 40 ms for its head to be acknowledged
    (asyncio sets it only on sockets that name their protocol, which accepted ones do not).
    """
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
