"""A process that stands for a kernel: it runs the code that a test sends it, one JSON line each way."""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Answer line after line until the input ends."""
    names: dict[str, Any] = {}
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_run(json.loads(line), names), default=str) + "\n")
        sys.stdout.flush()


def _run(code: str, names: dict[str, Any]) -> dict[str, Any]:
    try:
        try:
            compiled = compile(code, "<test>", "eval")
        except SyntaxError:
            exec(code, names)
            return {"value": None}
        return {"value": eval(compiled, names)}
    except BaseException as error:
        return {"error": type(error).__name__, "message": str(error), "hint": getattr(error, "hint", "")}


if __name__ == "__main__":
    main()
