"""`memkernel keys create | ls | revoke`: who may use the Memory API over HTTP."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from memkernel import config
from memkernel.cli.commands import Commands
from memkernel.cli.connecting import add_dsn, connected
from memkernel.cli.durations import duration
from memkernel.models import DEFAULT_WORKSPACE, ApiKey
from memkernel.render import moment_text, table_text


def add(commands: Commands) -> None:
    """The commands' lines."""
    keys = commands.add_parser("keys", help="the keys to the Memory API over HTTP")
    inner = keys.add_subparsers(required=True, metavar="COMMAND")
    create = inner.add_parser(
        "create",
        help="make a key; its secret is printed this once",
        description="Make a key. Its secret goes to standard output, alone: KEY=$(memkernel keys create) keeps it. "
        "With the first key, `memkernel serve` lets nobody in without one.",
    )
    create.add_argument(
        "--workspace", default=DEFAULT_WORKSPACE, metavar="ID", help="what it opens (default: %(default)s)"
    )
    create.add_argument("--name", default="", help="to tell it from others in `memkernel keys ls`")
    create.add_argument("--read-only", action="store_true", help="it reads, and changes nothing")
    create.add_argument("--expires", type=_moment, metavar="TIME", help="after 30d, 8w, 1y … or at a date, 2030-01-31")
    create.set_defaults(run=_create)
    ls = inner.add_parser("ls", help="all keys, without their secrets")
    ls.set_defaults(run=_ls)
    revoke = inner.add_parser("revoke", help="let a key open nothing any more, at once and for ever")
    revoke.add_argument("key", help="apikey_…, as `memkernel keys ls` shows it")
    revoke.set_defaults(run=_revoke)
    for each in (create, ls, revoke):
        add_dsn(each)


def _moment(text: str) -> datetime:
    """A length of time from now, or a date with or without a time, in UTC where it names no zone."""
    try:
        return datetime.now(UTC) + duration(text)
    except argparse.ArgumentTypeError:
        pass
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is too far away") from None
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is no time: 30d, 8w, 1y and 2030-01-31 are some") from None


def _create(options: argparse.Namespace) -> int:
    with connected(config.load(), options.dsn) as (database, line):
        key, secret = database.keys.create(
            options.workspace, options.name, read_only=options.read_only, expires_at=options.expires
        )
    until = "" if key.expires_at is None else f", until {_time(key.expires_at)}"
    told = f"{key.id} may {_right(key)} in workspace {key.workspace_id}{until}. Its secret:"
    print(f"{line}\n{told}", file=sys.stderr, flush=True)
    print(secret, flush=True)
    print("Keep it now: it is not shown again, and only its hash was stored.", file=sys.stderr)
    return 0


def _ls(options: argparse.Namespace) -> int:
    with connected(config.load(), options.dsn) as (database, _line):
        keys = database.keys.list()
    if not keys:
        print("There is no key. `memkernel keys create` makes one.")
        return 0
    rows = [
        (key.id, key.name or "-", key.workspace_id, _right(key), moment_text(key.created_at), _state(key))
        for key in keys
    ]
    print(table_text(("key", "name", "workspace", "may", "made (UTC)", "state"), rows))
    return 0


def _revoke(options: argparse.Namespace) -> int:
    with connected(config.load(), options.dsn) as (database, _line):
        before = {key.id: key for key in database.keys.list()}.get(options.key)
        key = database.keys.revoke(options.key)
        is_guarded = database.keys.any()
    when = "is revoked now" if before is None or before.revoked_at is None else f"was {_state(key)}, before this"
    print(f"{key.id}{f' ({key.name})' if key.name else ''} {when}: it opens nothing any more.")
    if not is_guarded:
        print("No key is left: `memkernel serve` lets in every program on its machine, and beyond it nobody.")
    return 0


def _right(key: ApiKey) -> str:
    return "read" if key.read_only else "read and write"


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {_time(key.revoked_at)}"
    if key.expires_at is None:
        return "valid"
    return f"{'expired' if key.expires_at <= datetime.now(UTC) else 'valid until'} {_time(key.expires_at)}"


def _time(moment: datetime) -> str:
    return f"{moment_text(moment)} UTC"
