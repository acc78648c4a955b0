"""Ctrl-C at a chosen instruction of the code under test."""

from __future__ import annotations

import sys
from collections.abc import Collection, Generator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any


@contextmanager
def interrupted_at(step: int, module: ModuleType, functions: Collection[str], reached: list[str]) -> Generator[None]:
    """Ctrl-C before this instruction of these functions, if they have so many; `reached` learns in which it was."""
    left = step

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != module.__file__ or frame.f_code.co_name not in functions:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                sys.settrace(None)
                reached.append(frame.f_code.co_name)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
