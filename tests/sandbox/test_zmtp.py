"""ZMTP as a sandbox may speak it: right, in any pieces, too much of it, or not at all."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from memkernel.sandbox import zmtp

LIMIT = 10_000

GREETING = zmtp.opening("DEALER")[:64]
READY = b"\x04\x06\x05READY"

parts = st.lists(st.binary(max_size=600), min_size=1, max_size=8)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces: list[bytes] = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


def test_it_talks_to_libzmq(tmp_path: Path) -> None:
    path = f"{tmp_path}/s"
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router, socket.socket(socket.AF_UNIX) as client:
        router.bind(f"ipc://{path}")
        client.connect(path)
        client.settimeout(5)
        reader = zmtp.Reader(LIMIT)
        client.sendall(zmtp.opening("DEALER", b"me"))
        while not reader.ready:
            assert reader.feed(client.recv(4096)) == []
        client.sendall(zmtp.message([b"", b"short", b"x" * 300]))
        assert router.recv_multipart() == [b"me", b"", b"short", b"x" * 300]
        router.send_multipart([b"me", b"y" * 1000, b""])
        messages: list[list[bytes]] = []
        while not messages:
            messages = reader.feed(client.recv(4096))
        assert messages == [[b"y" * 1000, b""]]


def test_a_subscriber_gets_everything(tmp_path: Path) -> None:
    path = f"{tmp_path}/s"
    with zmq.Context() as context, context.socket(zmq.XPUB) as publisher, socket.socket(socket.AF_UNIX) as client:
        publisher.bind(f"ipc://{path}")
        client.connect(path)
        client.settimeout(5)
        reader = zmtp.Reader(LIMIT)
        client.sendall(zmtp.opening("SUB"))
        while not reader.ready:
            reader.feed(client.recv(4096))
        client.sendall(zmtp.SUBSCRIPTION)
        assert publisher.recv() == b"\x01"
        publisher.send_multipart([b"topic", b"text"])
        assert reader.feed(client.recv(4096)) == [[b"topic", b"text"]]


@given(messages=st.lists(parts, max_size=5), sizes=st.lists(st.integers(0, 400), max_size=20))
def test_messages_are_the_same_in_whatever_pieces_they_come(messages: list[list[bytes]], sizes: list[int]) -> None:
    reader = zmtp.Reader(LIMIT)
    data = GREETING + READY + b"".join(map(zmtp.message, messages))
    assert [found for piece in cut(data, sizes) for found in reader.feed(piece)] == messages
    assert reader.ready
    assert reader.dropped_bytes == 0


@given(sizes=st.lists(st.integers(0, 5000), max_size=20), size=st.integers(LIMIT + 1, 3 * LIMIT))
def test_a_message_that_is_too_large_is_skipped_and_counted(sizes: list[int], size: int) -> None:
    reader = zmtp.Reader(LIMIT)
    large = zmtp.message([b"id", b"x" * size, b"tail"])
    data = GREETING + READY + zmtp.message([b"before"]) + large + zmtp.message([b"after"])
    found = [message for piece in cut(data, sizes) for message in reader.feed(piece)]
    assert found == [[b"before"], [b"after"]]
    assert reader.dropped_bytes == size + len(b"id") + len(b"tail")


def test_many_small_parts_are_too_much_as_well() -> None:
    reader = zmtp.Reader(LIMIT)
    many = zmtp.message([b""] * 1_000) + zmtp.message([b"x" * 20] * 600)
    assert reader.feed(GREETING + READY + many + zmtp.message([b"after"])) == [[b"after"]]


def test_a_part_that_claims_to_be_endless_takes_no_memory() -> None:
    reader = zmtp.Reader(LIMIT)
    assert reader.feed(GREETING + READY + b"\x02" + (2**63).to_bytes(8, "big")) == []
    for _ in range(100):
        assert reader.feed(b"x" * 65_536) == []
    assert reader._received == b""  # pyright: ignore[reportPrivateUsage] - what this is about


def test_empty_parts_beyond_the_limit_take_no_memory_and_end_their_own_message_only() -> None:
    reader = zmtp.Reader(LIMIT)
    large = b"\x03" + (LIMIT + 1).to_bytes(8, "big") + b"x" * (LIMIT + 1)
    assert reader.feed(GREETING + READY + large + b"\x01\x00" * 50_000) == []
    assert reader._received == b""  # pyright: ignore[reportPrivateUsage] - what this is about
    assert reader.feed(b"\x00\x00" + zmtp.message([b"after"])) == [[b"after"]]


def test_a_command_that_is_too_long_is_skipped() -> None:
    reader = zmtp.Reader(LIMIT)
    command = b"\x06" + (5_000).to_bytes(8, "big") + b"x" * 5_000
    assert reader.feed(GREETING + READY + command + zmtp.message([b"x" * LIMIT])) == [[b"x" * LIMIT]]


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 200 OK".ljust(64), bytes(64), b"\xff" + bytes(8) + b"\x7f\x01" * 30])
def test_who_does_not_speak_zmtp_3_is_not_listened_to(greeting: bytes) -> None:
    with pytest.raises(ValueError, match="ZMTP"):
        zmtp.Reader(LIMIT).feed(greeting.ljust(64, b"\0"))


@given(data=st.binary(max_size=2_000), sizes=st.lists(st.integers(0, 100), max_size=10))
def test_no_bytes_break_it(data: bytes, sizes: list[int]) -> None:
    reader = zmtp.Reader(LIMIT)
    for piece in [GREETING, *cut(data, sizes)]:
        for message in reader.feed(piece):
            assert sum(map(len, message)) <= LIMIT
