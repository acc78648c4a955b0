"""%agent: the runs that the database keeps, in a shell of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from IPython.core.error import UsageError

import memkernel as mk
from memkernel import errors, ids
from memkernel.agent.event_rows import data_of
from memkernel.agent.events import Event, RunStarted, TextDelta, ToolCalled, ToolReturned, TurnEnded, TurnStarted
from memkernel.jupyter.commands.agent_runs import costs
from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.widgets.version_diff import VersionDiff
from memkernel.models import Actor, Cause, RunEvent, RunRecord, Usage
from memkernel.store.run_processes import this_process
from tests.fix_kernel import Shell

USED = Usage(1_000, 200)


def html_of(diff: mk.Diff) -> str:
    """What a notebook shows of it."""
    return diff._repr_mimebundle_()["text/html"]  # pyright: ignore[reportPrivateUsage]  # IPython's protocol


Keep = Callable[..., RunRecord]


def happened(*events: Event) -> list[Event]:
    return [RunStarted("run_1", "Go on", "claude-sonnet-5-5"), TurnStarted(1), *events, TurnEnded(1, "end_turn", USED)]


@pytest.fixture
def keep(somebody_else: mk.Connection) -> Keep:
    """Keep a run as another kernel's agent would."""
    runs = somebody_else.database.runs

    def _keep(events: Sequence[Event] = (), *, ended: str = "done", **given: Any) -> RunRecord:
        begun: dict[str, Any] = {"kind": "live", "model": "claude-sonnet-5-5", "prompt": "Tidy the notes", **given}
        cost_usd = begun.pop("cost_usd", 0.25)
        session_id = ids.mint("sesn")
        run = runs.begin(ids.mint("run"), session_id=session_id, process=this_process(), **begun)
        rows = [RunEvent(n, event.type, data_of(event), datetime.now(UTC)) for n, event in enumerate(events, 1)]
        runs.append(
            run.id,
            rows,
            session_id=session_id,
            process=this_process(),
            turns=1,
            usage=USED,
            cost_usd=cost_usd,
            status=ended,  # pyright: ignore[reportArgumentType]  # a RunStatus, by a shorter name
        )
        return runs.retrieve(run.id)

    return _keep


# -- which there are -----------------------------------------------------------------------------------


def test_the_runs_are_listed_newest_first_by_store_and_status(
    shell: Shell, keep: Keep, somebody_else: mk.Connection
) -> None:
    notes = somebody_else.store("Team notes")
    first, second = keep(memory_store_ids=[notes.id]), keep(ended="error")
    assert [run.id for run in shell.run("%agent ls")] == [second.id, first.id]
    assert [run.id for run in shell.run("%agent")] == [second.id, first.id]
    assert [run.id for run in shell.run("%agent ls -n 1")] == [second.id]
    assert [run.id for run in shell.run("%agent ls -s team-notes")] == [first.id]
    assert [run.id for run in shell.run("%agent ls --status error")] == [second.id]
    assert list(shell.run("%agent ls --df")["status"]) == ["error", "done"]
    assert "Tidy the notes" in repr(shell.run("%agent ls"))


def test_where_there_is_none_it_is_said(shell: Shell) -> None:
    assert "No run of an agent was kept" in repr(shell.run("%agent ls"))
    with pytest.raises(UsageError, match="there is no run yet\nAn `%%agent` cell begins one"):
        shell.run("%agent show")
    with pytest.raises(errors.RunNotFoundError):
        shell.run("%agent show run_nonsense")


# -- what they cost ------------------------------------------------------------------------------------


def test_costs_are_summed_by_model_and_what_has_no_price_is_told(
    shell: Shell, keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    keep()
    keep(cost_usd=0.5)
    keep(model="my-model", cost_usd=None)
    keep(model="scripted", kind="scripted", cost_usd=0.0)
    rows = shell.run("%agent cost")
    assert "$0.75 in all, for 4 runs.\n" in capsys.readouterr().out
    assert [(row.model, row.runs, row.cost_usd, row.unpriced) for row in rows] == [
        ("claude-sonnet-5-5", 2, 0.75, 0),
        ("my-model", 1, 0.0, 1),
        ("scripted", 1, 0.0, 0),
    ]
    assert rows[0].usage == USED + USED
    told = repr(rows)
    assert "$0.75" in told
    assert "2,400" in told
    assert "without 1 run: no price is known" in told
    assert list(shell.run("%agent cost --df")["unpriced"]) == [0, 1, 0]


def test_costs_since_a_time(shell: Shell, keep: Keep) -> None:
    keep()
    assert len(shell.run("%agent cost --since yesterday")) == 1
    assert len(shell.run("%agent cost --since @2020-11-30T10:00")) == 1
    assert repr(shell.run("%agent cost --since @2999-01-01")) == "No run was kept since then."
    with pytest.raises(UsageError, match="'@41' is not a time"):
        shell.run("%agent cost --since @41")


def test_the_sums_of_no_runs_are_none() -> None:
    assert costs([]) == []


# -- one of them ---------------------------------------------------------------------------------------


def test_a_run_is_shown_with_what_it_said_and_did(shell: Shell, keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    call = ToolCalled("toolu_1", "memory", {"command": "view", "path": "/memories"})
    run = keep(happened(call, ToolReturned("toolu_1", "memory", "nothing here", False, 0.1), TextDelta("Well.")))
    for line in ("%agent show", "%agent show last", f"%agent show {run.id} -o again", "%agent replay last --speed 50"):
        capsys.readouterr()
        assert shell.run(line) is None
        told = capsys.readouterr().out
        assert told.startswith("[shown again, nothing runs now]\n> Go on\n")
        assert "→ memory view /memories\n  │ nothing here\nWell.\n" in told
        assert "done · 1 turn" in told
    again = shell.value("again")
    assert (again.id, again.status, again.usage) == (run.id, "done", USED)
    shell.run("%memory config render static")
    assert "nothing here" in str(shell.run("%agent show"))


def test_a_run_whose_store_is_gone_is_shown_all_the_same(
    shell: Shell, keep: Keep, somebody_else: mk.Connection
) -> None:
    gone = somebody_else.create_store("Gone")
    keep(happened(TextDelta("I was there.")), memory_store_ids=[gone.id])
    gone.drop()
    shell.run("%memory config render static")
    run = shell.run("%agent show")
    assert "I was there." in str(run)
    with pytest.raises(UsageError, match=r"the store of run_.* was deleted\n`--store STORE`"):
        shell.run("%agent --resume")


def test_what_a_run_changed_is_known_from_its_record(shell: Shell, keep: Keep, somebody_else: mk.Connection) -> None:
    notes = somebody_else.store("Team notes")
    run = keep(happened(), memory_store_ids=[notes.id])
    session, cause = Actor("session_actor", run.session_id), Cause(run.id, "toolu_1")
    somebody_else.database.memories.create(notes.id, path="/a.md", content="A", actor=session, cause=cause)
    notes.write("/b.md", "B")
    shell.run("%memory config render static")
    shown = shell.run("%agent show")
    assert [version.path for version in shown.changes] == ["/a.md"]
    assert [version.path for version in shown.changes_by("toolu_2")] == []
    log = shell.run("%memory log")
    heads = repr(log).splitlines()[0].split()
    assert heads[-2:] == ["run", "call"]
    by_path = {line.split()[1]: line for line in repr(log).splitlines()[2:]}
    assert by_path["/a.md"].endswith(f"{run.id}  toolu_1")
    assert run.id not in by_path["/b.md"]
    frame = shell.run("%memory log --df")
    assert list(frame["run_id"].dropna()) == [run.id]
    assert run.id in log.html()
    assert "run" not in repr(shell.run("%memory log /b.md")).splitlines()[0].split()
    made_by = f"@1 was made by {run.id}, in its call toolu_1"
    assert made_by in str(notes.diff("/a.md"))
    assert made_by in html_of(notes.diff("/a.md"))
    assert "made by" not in str(notes.diff("/b.md"))
    widget = VersionDiff.of(notes.diff("/a.md"), Preferences())
    assert widget is not None
    assert (widget.view["notes"], widget.view["made"]) == ([], [made_by, run.id, "toolu_1"])


def test_a_run_that_goes_on_elsewhere_is_asked_to_stop(shell: Shell, keep: Keep, somebody_else: mk.Connection) -> None:
    run = keep(happened(), ended="running")
    with pytest.raises(errors.AgentError, match="has not ended"):
        shell.run("%agent replay last")
    with pytest.raises(UsageError, match="no run goes on in this kernel"):
        shell.run("%agent stop")
    assert "was asked to stop it" in repr(shell.run(f"%agent stop {run.id}"))
    with pytest.raises(errors.RunRunningError):
        shell.run("%agent rm last -y")
    ended = keep(happened())
    assert repr(shell.run(f"%agent stop {ended.id}")) == f"{ended.id} has ended already: done."


def agrees(question: str) -> str:
    """Somebody who answers any question with yes."""
    assert question.endswith("[y/N] ")
    return "y"


def test_a_record_is_deleted_after_a_question(shell: Shell, keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = keep(), keep()
    with pytest.raises(errors.NotConfirmedError):
        shell.run("%agent rm last")
    monkeypatch.setattr("builtins.input", agrees)
    assert "Deleted" in repr(shell.run("%agent rm last"))
    assert [run.id for run in shell.run("%agent ls")] == [first.id]
    assert "Deleted" in repr(shell.run(f"%agent rm {first.id} -y"))
    with pytest.raises(errors.RunNotFoundError):
        shell.run(f"%agent rm {second.id} -y")


# -- completion ----------------------------------------------------------------------------------------


def test_runs_models_recordings_and_approvals_are_completed(shell: Shell, keep: Keep) -> None:
    first, second = keep(), keep(ended="running")
    assert shell.complete("%agent show ") == ["last", second.id, first.id]
    assert shell.complete("%agent rm la") == ["last"]
    assert shell.complete("%agent stop ") == [second.id]
    assert shell.complete("%%agent --resume run_") == [second.id, first.id]
    assert "--resume" in shell.complete("%%agent --re")
    assert shell.complete("%%agent --resume --n") == ["--new"]
    assert "claude-sonnet-5-5" in shell.complete("%%agent -m cl")
    assert shell.complete("%%agent --replay de") == ["demo"]
    assert shell.complete("%%agent --approve-tool bash=a") == ["bash=auto", "bash=ask"]
    assert shell.complete("%%agent --approve n") == ["never"]
    assert shell.complete("%agent ls --status d") == ["done"]
    assert shell.complete("%agent cost --since y") == ["yesterday"]
    assert shell.complete("%agent re") == ["replay"]
    assert shell.complete("%agent --re") == ["--resume", "--record", "--replay"]
    assert shell.complete("%agent --new --max-to") == ["--max-total-tokens"]
    assert shell.complete("%agent ls -s te") == ["team-notes"]


# -- in a terminal -------------------------------------------------------------------------------------


def test_a_terminal_is_written_to_as_the_run_goes_on(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run('get_ipython().run_cell_magic("agent", "-o run", "Remember that I prefer SI units")')
    told = capsys.readouterr().out
    assert told.startswith("[scripted, not a language model]\n")
    assert "→ memory create /memories/notes.md\n" in told
    assert "done · 3 turns" in told
    assert shell.value("run").status == "done"


def test_in_a_terminal_a_run_in_the_background_is_one_line(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run('get_ipython().run_cell_magic("agent", "--bg -o run", "Remember that I prefer SI units")')
    run = shell.value("run").wait(30)
    assert capsys.readouterr().out == (f"{run.id} goes on in the background: `%agent show {run.id}`, `%agent stop`.\n")
    shell.run("%agent show")
    assert "done · 3 turns" in capsys.readouterr().out
