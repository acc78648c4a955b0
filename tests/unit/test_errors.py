"""The error tree: its drawing is true, every error is two lines that say what and what to do."""

from __future__ import annotations

import pickle
import re
from inspect import getmembers, isclass

import pytest

from memkernel import errors
from memkernel.errors import MemkernelError

CLASSES: dict[str, type[MemkernelError]] = {
    name: found for name, found in getmembers(errors, isclass) if issubclass(found, MemkernelError)
}

SAMPLES: tuple[MemkernelError, ...] = (
    errors.AgentError("the run was cut off"),
    errors.AlreadyExistsError("Team notes"),
    errors.AmbiguousStoreError("notes", ["memstore_1", "memstore_2"]),
    errors.ApiKeyNotFoundError("apikey_1"),
    errors.ApiError(405, "PATCH is not a method of this route", headers={"allow": "GET"}),
    errors.BinariesNotFoundError(),
    errors.CapacityError(2_000),
    errors.CellFailedError("the cell timed out after 2.0 s"),
    errors.ClusterError("the directory is not ours"),
    errors.ConflictError("it is not what you thought"),
    errors.ContentTooLargeError(104_220, 102_400),
    errors.DatabaseError("PostgreSQL refused"),
    errors.DatabaseUnavailableError(saved=None, memory_store_id="memstore_1", version_id="memver_1"),
    errors.EngineError("Docker refused"),
    errors.EngineNotFoundError(["unix:///var/run/docker.sock: nothing answers"]),
    errors.HeadRedactionError("memver_1"),
    errors.HistoryPrunedError(41),
    errors.ImageError("python:3.12", "it has no ipykernel", hint="Install it."),
    errors.InvalidContentError("byte 3 is not UTF-8"),
    errors.InvalidInputError("a limit of 0 rows shows nothing"),
    errors.InvalidPageError(),
    errors.InvalidPathError("/a//b", "it has an empty segment"),
    errors.MemkernelError("it failed"),
    errors.MemoryNotFoundError("/units.mdd", "team-notes", ["/units.md"]),
    errors.MemoryToolError("The path /memories/x does not exist"),
    errors.ModelRequestError("the model is overloaded", hint="Try again.", status_code=529, request_id="req_1"),
    errors.MountError("/data", "it is not there", hint="Make it."),
    errors.NoApiKeyError(),
    errors.NoStoreInUseError(),
    errors.NotConfirmedError("it was not confirmed"),
    errors.NotFoundError("it is not there"),
    errors.PathConflictError("/a/b", "/a", "mem_1"),
    errors.PreconditionFailedError("/a", "ab" * 32, None),
    errors.QueryError("there is no column 'pth'", line=1, column=8, hint="Near: path"),
    errors.QueryRefusedError("DROP is not run"),
    errors.RecordingError("there is no recording dmo", hint="Did you mean demo?"),
    errors.RedactedError("memver_1"),
    errors.RefusedError("the rules say no"),
    errors.RunNotFoundError("run_1"),
    errors.RunRunningError("run_1"),
    errors.RunTakenOverError("run_1"),
    errors.SandboxClosedError(),
    errors.SandboxError("it cannot be done"),
    errors.SchemaTooNewError(found=9, known=8),
    errors.SchemaTooOldError(found=7, needed=8),
    errors.ServeError("port 8765 of 127.0.0.1 is taken"),
    errors.ServerStartError("PostgreSQL did not start"),
    errors.ServerTooOldError("14.2"),
    errors.SessionNotFoundError("sesn_1"),
    errors.SessionRunningError("sesn_1"),
    errors.SessionOverError("the session has ended"),
    errors.StoreArchivedError("memstore_1"),
    errors.StoreAttachedError("memstore_1", ["sesn_1"]),
    errors.StoreNotFoundError("nots", ["notes"]),
    errors.SyncConflictError(["/a", "/b"]),
    errors.SyncError("the mount is another store's"),
    errors.UnisolatedModelError(),
    errors.UnsupportedClientError("no client"),
    errors.VersionNotFoundError("@9", "/units.md"),
    errors.WorkspaceRoleError("ann may not make the role memkernel_api", ["CREATE ROLE memkernel_api NOLOGIN;"]),
)

_LINE = re.compile(r"^ {4}(?P<stem>[│ ├└─]*)(?P<name>\w+Error)(?: \((?P<bases>[\w, ]+)\))?(?: {2,}(?P<note>.*))?$")


def drawn() -> dict[str, tuple[str, str, str]]:
    """For each name in the drawing: the error above it, its other bases, and what stands beside it."""
    above: dict[int, str] = {}
    found: dict[str, tuple[str, str, str]] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := _LINE.match(line):
            depth = len(match["stem"]) // 4
            assert match["name"] not in found, "drawn twice"
            found[match["name"]] = (above.get(depth - 1, ""), match["bases"] or "", match["note"] or "")
            above[depth] = match["name"]
    return found


def test_every_error_is_drawn_once_and_nothing_else() -> None:
    assert drawn().keys() == CLASSES.keys()


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_error_hangs_where_it_is_drawn(name: str) -> None:
    above, others, _ = drawn()[name]
    bases = [base.__name__ for base in CLASSES[name].__bases__]
    expected = [above or "Exception", *filter(None, others.split(", "))]
    assert bases == expected


def test_every_error_has_a_sample_here() -> None:
    assert sorted(type(sample).__name__ for sample in SAMPLES) == sorted(CLASSES)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_errors_facts_are_those_that_are_drawn(error: MemkernelError) -> None:
    _, _, note = drawn()[type(error).__name__]
    parents = [drawn()[base.__name__][2] for base in type(error).__mro__[1:] if base.__name__ in CLASSES]
    facts = {word[1:] for text in (note, *parents) for word in text.split() if word.startswith(".")}
    assert vars(error).keys() - {"hint"} == facts


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_is_a_sentence_and_at_most_one_more(error: MemkernelError) -> None:
    lines = error.lines()
    assert lines[0] == f"{type(error).__name__}: {error}"
    assert lines[1:] == ([error.hint] if error.hint else [])
    assert not any("\n" in line for line in lines)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_out_of_another_process(error: MemkernelError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_a_notebook_shows_two_lines_in_place_of_a_traceback() -> None:
    error = errors.MemoryNotFoundError("/units.mdd", "team-notes", ["/units.md"])
    assert error._render_traceback_() == [  # pyright: ignore[reportPrivateUsage]  # IPython's protocol
        "MemoryNotFoundError: there is no memory /units.mdd in team-notes",
        "Near: /units.md",
    ]


def test_the_whole_traceback_is_shown_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemkernelError, "show_traceback", True)
    with pytest.raises(errors.CapacityError) as raised:
        raise errors.CapacityError(2_000)
    shown = "".join(raised.value._render_traceback_())  # pyright: ignore[reportPrivateUsage]  # IPython's protocol
    assert "Traceback (most recent call last)" in shown
    assert "raise errors.CapacityError(2_000)" in shown


@pytest.mark.parametrize(
    ("error", "kind"),
    [(errors.InvalidPathError("x", "it must start with /"), ValueError), (errors.StoreNotFoundError("x"), LookupError)],
)
def test_an_error_can_be_caught_as_pythons_own(error: Exception, kind: type[Exception]) -> None:
    assert isinstance(error, kind)


def test_what_is_near_comes_before_what_lists_all() -> None:
    assert errors.StoreNotFoundError("nots", ["notes", "nuts"]).hint == "Near: notes, nuts"
    assert errors.StoreNotFoundError("nots").hint == "`%memory stores` lists them."


@pytest.mark.parametrize(
    ("saved", "words"), [(False, "nothing was changed"), (None, "it is unknown whether this was saved")]
)
def test_a_lost_server_says_what_became_of_the_change(saved: bool | None, words: str) -> None:
    assert words in str(errors.DatabaseUnavailableError(saved=saved))


def test_a_failed_precondition_tells_a_new_text_from_none() -> None:
    assert "it is not there" in str(errors.PreconditionFailedError("/a", "ab" * 32, None))
    assert "its sha256 is now cdcdcdcdcdcd…" in str(errors.PreconditionFailedError("/a", "ab" * 32, "cd" * 32))


def test_a_query_error_names_its_place_where_it_is_known() -> None:
    assert str(errors.QueryError("it failed", line=2, column=7)) == "it failed (line 2, column 7)"
    assert str(errors.QueryError("it failed")) == "it failed"
