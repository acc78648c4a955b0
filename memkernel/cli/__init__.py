"""The command line: `memkernel demo | doctor | keys | migrate | prune | serve | session | stop`, a module each."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from memkernel import __version__
from memkernel.cli import demo, doctor, keys, prune, serve, servers, sessions
from memkernel.errors import MemkernelError

_COMMANDS = (demo, doctor, keys, prune, serve, servers, sessions)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 1 for an error that is told, 2 for a wrong command line."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and (options.run is not demo.run or options.execute):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = [argument for argument in rest if argument != "--"]
    try:
        return _flushed(options.run(options))
    except MemkernelError as error:
        print("\n".join(error.lines()), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at its end
        return 141


def _flushed(status: int) -> int:
    sys.stdout.flush()  # here, where a broken pipe is borne
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memkernel", description="A real memory for agents in Jupyter notebooks.")
    parser.add_argument("--version", action="version", version=f"memkernel {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser
