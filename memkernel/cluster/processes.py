"""What runs on a place: its postmaster, its supervisor, its clients. Looks only; nothing is changed here."""

from __future__ import annotations

import os
import re
import socket
import struct
from pathlib import Path
from typing import BinaryIO

from memkernel.cluster.initdb import DATABASE, ROLE
from memkernel.cluster.places import Place
from memkernel.cluster.supervisor import CLIENTS_LOCK, SERVER_LOCK, command_line, is_postmaster, read_pid_file
from memkernel.cluster.supervisor import is_supervised as is_supervised_path

_PROTOCOL_3 = 196_608
_TERMINATE = b"X\x00\x00\x00\x04"
_CANNOT_CONNECT_NOW = b"C57P03\x00"


def postmaster_pid(place: Place) -> int:
    """The pid of the living postmaster on this data directory; 0: none."""
    pid, _ = read_pid_file(str(place.data))
    return pid if is_postmaster(pid, str(place.data)) else 0


def supervisor_pid(place: Place) -> int:
    """The pid of the living supervisor of this directory; 0: none."""
    try:
        pid = int((place.directory / SERVER_LOCK).read_text() or 0)
    except (OSError, ValueError):
        return 0
    return pid if os.fsencode(place.directory) in command_line(pid) and is_supervised(place) else 0


def is_supervised(place: Place) -> bool:
    """Whether a supervisor lives, even one that has not come as far as its first word."""
    return is_supervised_path(str(place.directory))


def is_serving(place: Place) -> bool:
    """Whether the server runs, is ours, and opens sessions."""
    pid, ready = read_pid_file(str(place.data))
    return ready and is_postmaster(pid, str(place.data)) and opens_sessions(place.socket_file)


def client_count(place: Place) -> int | None:
    """How many processes are registered as clients; None where the system does not tell (macOS)."""
    if not os.path.exists("/proc/locks"):
        return None
    try:
        inode = (place.directory / CLIENTS_LOCK).stat().st_ino
    except OSError:
        return 0
    # By the inode alone: for btrfs, the device that is listed is not the one that stat gives.
    return len(re.findall(rf"FLOCK +ADVISORY +READ +\d+ \S+:{inode} ", Path("/proc/locks").read_text()))


def opens_sessions(socket_file: Path) -> bool:
    """Whether a session can be opened now: not while the server starts, recovers from a crash or stops.

    A refusal of another kind (too many connections, say) counts as an answer: the caller will get it too.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5.0)
        try:
            connection.connect(str(socket_file))
            connection.sendall(_startup_message())
            with connection.makefile("rb") as answers:
                opened = _is_opened(answers)
            connection.sendall(_TERMINATE)
        except OSError:
            return False
        return opened


def _startup_message() -> bytes:
    fields = ("user", ROLE, "database", DATABASE, "application_name", "memkernel", "")
    body = struct.pack("!i", _PROTOCOL_3) + b"".join(field.encode() + b"\0" for field in fields)
    return struct.pack("!i", len(body) + 4) + body


def _is_opened(answers: BinaryIO) -> bool:
    """Read up to ReadyForQuery (a session that is left earlier is logged as broken) or to the refusal."""
    while len(head := answers.read(5)) == 5:
        kind, length = struct.unpack("!ci", head)
        body = answers.read(length - 4)
        if kind == b"Z":
            return True
        if kind == b"E":
            return _CANNOT_CONNECT_NOW not in body
    return False
