"""How a cell or a bash script ended: its status, and what is to be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memkernel.models import CellError, CellResult, CellStatus
from memkernel.sandbox.base import Exit
from memkernel.sandbox.follow import Followed
from memkernel.sandbox.life import Life, how
from memkernel.sandbox.output import Outputs
from memkernel.sandbox.work import Cell, Command, Work

_OOM_S: Final = 0.1  # no cell fills the memory faster; shorter ones are not asked about

_GIVEN_UP: Final = "the kernel could not be stopped and was restarted: its state is lost"
_KILLED: Final = "the memory limit was hit: something that the code had started was killed"
_HALF_TOLD: Final = "the kernel did not tell the end of this cell: output may be missing; a restart helps"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`exit` is how the kernel ended, where it ended with this work."""

    status: CellStatus
    notes: tuple[str, ...]
    exit: Exit | None = None

    def result(self, work: Work, outputs: Outputs, duration_s: float, news: list[str]) -> CellResult:
        """What the caller gets; `news` are notes of what was before."""
        exit_code = work.exit_code if isinstance(work, Command) else None
        if exit_code is None and self.exit is not None:
            exit_code = self.exit.exit_code
        error = outputs.error
        return CellResult(
            status=self.status,
            stdout=outputs.stream("stdout"),
            stderr=outputs.stream("stderr"),
            result=outputs.result,
            outputs=outputs.kept(),
            error=CellError(error["ename"], error["evalue"], tuple(error["traceback"])) if error is not None else None,
            exit_code=exit_code,
            duration_s=duration_s,
            notes=(*news, *self.notes, *outputs.notes()),
        )


def judge(work: Work, followed: Followed, life: Life, duration_s: float) -> Verdict:
    """How the work ended, and what it did to the kernel."""
    if followed.given_up:
        return Verdict(_status(work, followed, died=False), (*_said(work, life), _GIVEN_UP))
    if isinstance(work, Cell) and work.told_to_exit:
        life.leave()
    life.look()
    status = _status(work, followed, died=life.exit is not None)
    if status == "died" or life.exit is not None:
        exit = life.wait_for_exit()
        if exit.out_of_memory and status in ("ok", "died"):
            status = "out_of_memory"
        return Verdict(status, (*_said(work, life), how(exit)), exit)
    hits = life.hits()
    if (status != "ok" or duration_s > _OOM_S) and life.memory_limit_was_hit():
        hits.append(_KILLED)
    return Verdict(status, (*_said(work, life), *hits))


def _status(work: Work, followed: Followed, *, died: bool) -> CellStatus:
    if followed.timed_out:
        return "timeout"
    return "interrupted" if followed.interrupted else work.status(died=died)


def _said(work: Work, life: Life) -> tuple[str, ...]:
    half = (_HALF_TOLD,) if isinstance(work, Cell) and work.half_told else ()
    late = life.driver.late()
    return (*half, f"left out: {late:,} outputs of earlier cells, which came late") if late else half
