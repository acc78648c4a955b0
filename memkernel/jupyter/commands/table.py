"""The magics and all their commands."""

from __future__ import annotations

from typing import Final

from memkernel.jupyter.command import Magic, by_name
from memkernel.jupyter.commands import (
    agent,
    agent_control,
    agent_runs,
    configuring,
    history,
    query,
    reading,
    sandbox,
    sandbox_cell,
    sandbox_changes,
    serve,
    stores,
    writing,
)

AGENT: Final = Magic(
    "agent",
    "A model that works with the memory, with a sandbox, or with both; what it did is kept.",
    by_name(command for group in (agent_runs, agent_control) for command in group.COMMANDS),
    bare="ls",
    cell=agent.AGENT,
    other_words={
        "abort": "stop",
        "cancel": "stop",
        "costs": "cost",
        "delete": "rm",
        "history": "ls",
        "kill": "stop",
        "list": "ls",
        "log": "show",
        "logs": "show",
        "price": "cost",
        "runs": "ls",
        "status": "ls",
        "tokens": "context",
        "usage": "cost",
    },
)

SANDBOX: Final = Magic(
    "sandbox",
    "Python and bash in a box; its folders under /mnt/memory are memory stores, saved after each cell.",
    by_name(command for group in (sandbox, sandbox_changes) for command in group.COMMANDS),
    bare="status",
    cell=sandbox_cell.SANDBOX,
    other_words={
        "close": "stop",
        "conflicts": "changes",
        "diff": "changes",
        "end": "stop",
        "info": "status",
        "list": "ls",
        "log": "logs",
        "new": "start",
        "open": "start",
        "ps": "ls",
        "show": "panel",
        "pull": "sync",
        "push": "sync",
        "rejected": "changes",
        "save": "sync",
        "stores": "mounts",
    },
)

MEMORY: Final = Magic(
    "memory",
    "An agent's memory, kept in PostgreSQL, every change a version.",
    by_name(
        command
        for group in (stores, reading, writing, history, query, serve, configuring)
        for command in group.COMMANDS
    ),
    bare="browse",
    other_words={
        "check": "verify",
        "cp": "put",
        "delete": "rm",
        "edit": "replace",
        "find": "grep",
        "fsck": "verify",
        "history": "log",
        "init": "connect",
        "list": "ls",
        "move": "mv",
        "query": "sql",
        "read": "cat",
        "rename": "mv",
        "show": "cat",
        "undo": "restore",
        "write": "put",
    },
    see_also=(agent.AGENT, sandbox_cell.SANDBOX),
)

MAGICS: Final = {magic.name: magic for magic in (MEMORY, AGENT, SANDBOX)}
