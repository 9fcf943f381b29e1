"""Sockets of the local cloud do not hold small answers back."""

import socket

import pytest

from factbook_local.sockets import listen


def test_an_accepted_connection_sends_at_once() -> None:
    with listen(0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_it_listens_on_the_loopback_interface_alone() -> None:
    with listen(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_a_taken_port_is_refused() -> None:
    with listen(0) as holder, pytest.raises(OSError, match="in use"):
        listen(holder.getsockname()[1])
