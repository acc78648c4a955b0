"""Every command of %memory in a shell of this process, on a real database."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import psycopg
import pytest
from IPython.core.error import UsageError

import memkernel as mk
from memkernel import errors, ids
from memkernel.store.run_processes import this_process
from tests.fix_kernel import Shell


@pytest.fixture
def notes(shell: Shell, somebody_else: mk.Connection) -> mk.Store:
    """The store in use, as somebody else holds it."""
    return somebody_else.store("Team notes")


# -- stores ----------------------------------------------------------------------------------------


def test_the_stores_are_listed_newest_first(shell: Shell) -> None:
    shell.run('%memory create Handbook --description "House rules"')
    assert [store.name for store in shell.run("%memory stores")] == ["Handbook", "Team notes"]
    assert [store.description for store in shell.run("%memory stores -n 1")] == ["House rules"]


def test_a_bare_memory_is_the_store_in_use(shell: Shell) -> None:
    shell.run("%%memory put /a.md\nA\n")
    shell.run("%%memory put /d/b.md\nB\n")
    assert [memory.path for memory in shell.run("x = %memory") or shell.value("x")] == ["/a.md", "/d/b.md"]
    head, columns, *_ = repr(shell.value("x")).splitlines()
    assert (head, columns.split()) == ("Team notes: 2 memories", ["path", "size", "updated"])
    assert list(shell.run("%memory --df")["path"]) == ["/a.md", "/d/b.md"]
    assert shell.run("%memory -q -o kept") is None
    assert len(shell.value("kept")) == 2


def test_browse_takes_a_store_a_path_or_both(shell: Shell) -> None:
    shell.run("%%memory put /a.md\nA\n")
    shell.run("%memory create Handbook")
    shell.run("%%memory put handbook:/rules/b.md\nB\n")
    for line in ("handbook", "handbook /rules", "handbook:/rules", "handbook:/rules/", "handbook:/rules/b.md"):
        assert [memory.path for memory in shell.run(f"%memory browse {line}")] == ["/rules/b.md"]
    assert shell.run("%memory browse handbook:/rules").prefix == "/rules/"
    assert shell.run("%memory browse /a.md").selected == "/a.md"
    with pytest.raises(errors.MemoryNotFoundError):
        shell.run("%memory browse /rules")


def test_without_a_store_in_use_a_bare_memory_is_the_stores(
    bare_shell: Shell, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKERNEL_DSN", dsn)
    bare_shell.run("%load_ext memkernel")
    bare_shell.run("%memory create Notes")
    assert [store.name for store in bare_shell.run("%memory")] == ["Notes"]
    assert list(bare_shell.run("%memory browse --df")["name"]) == ["Notes"]


def test_search_finds_words_in_contents_and_paths(shell: Shell) -> None:
    shell.run("%%memory put /units.md\nSI\n")
    shell.run("%%memory put /a.md\nall units are SI units\n")
    assert [hit.path for hit in shell.run("%memory search units")] == ["/units.md", "/a.md"]
    assert [hit.path for hit in shell.run('%memory search "UNITS are" /a.md -n 5')] == ["/a.md"]
    first = shell.run("%memory search units -n 1")
    assert (len(first), "1 of 2 shown" in repr(first)) == (1, True)


def test_a_store_is_created_once_by_name(shell: Shell) -> None:
    made = shell.run('%memory create "House rules"')
    assert (made.name, made.slug) == ("House rules", "house-rules")
    with pytest.raises(errors.AlreadyExistsError):
        shell.run('%memory create "House rules"')


def test_use_takes_a_store_makes_one_and_tells_which(shell: Shell) -> None:
    assert shell.run("%memory use").name == "Team notes"
    made = shell.run("%memory use Other --create")
    assert shell.run("%memory use Other --create").id == made.id
    assert shell.run("%memory use team-notes").name == "Team notes"
    with pytest.raises(errors.StoreNotFoundError):
        shell.run("%memory use nowhere")
    assert shell.run("%memory use").name == "Team notes"


def test_without_a_store_in_use_a_path_needs_one(bare_shell: Shell, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKERNEL_DSN", dsn)
    bare_shell.run("%load_ext memkernel")
    bare_shell.run("%memory create Notes")
    with pytest.raises(errors.NoStoreInUseError):
        bare_shell.run("%memory ls /")
    assert bare_shell.run("%memory ls notes:/") == []
    assert bare_shell.run("%memory ls -s Notes") == []


def test_an_archived_store_is_read_and_not_written(shell: Shell) -> None:
    shell.run("%%memory put /a.md\nA\n")
    assert shell.run("%memory archive team-notes -y").record.archived_at is not None
    assert shell.run("%memory cat /a.md").content == "A\n"
    with pytest.raises(errors.StoreArchivedError):
        shell.run("%%memory put /a.md\nB\n")
    assert shell.run("%memory stores") == []
    assert len(shell.run("%memory stores --all")) == 1


def test_a_dropped_store_is_gone_and_no_longer_in_use(shell: Shell) -> None:
    shell.run("%%memory put /a.md\nA\n")
    assert "'Team notes'" in repr(shell.run("%memory drop team-notes -y"))
    assert shell.run("%memory stores --all") == []
    with pytest.raises(errors.NoStoreInUseError):
        shell.run("%memory ls /")


def test_status_and_connect_name_the_server_and_no_password(shell: Shell, dsn: str) -> None:
    assert shell.run("%memory status").server_version
    connection = shell.run("%memory connect -o db")
    assert shell.value("db") is connection
    assert "PostgreSQL" in repr(connection)
    assert shell.run("%memory use").name == "Team notes"


def test_a_connection_to_another_database_has_no_store_in_use(shell: Shell, empty_dsn: str) -> None:
    shell.run(f"%memory connect {empty_dsn}")
    with pytest.raises(errors.NoStoreInUseError):
        shell.run("%memory ls /")


def test_without_any_store_the_way_to_one_is_told(
    bare_shell: Shell, dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMKERNEL_DSN", dsn)
    bare_shell.run("%load_ext memkernel")
    assert bare_shell.run("%memory stores") == []
    assert "`%memory use NAME --create` makes one" in capsys.readouterr().out
    assert "`%memory use NAME --create` makes one" in repr(bare_shell.run("%memory"))


def test_a_connection_that_fails_leaves_the_old_one(shell: Shell) -> None:
    with pytest.raises(errors.DatabaseUnavailableError) as caught:
        shell.run("%memory connect postgresql://ann:secret@127.0.0.1:1/nowhere")
    assert "secret" not in "\n".join(caught.value.lines())
    assert shell.run("%memory use").name == "Team notes"


# -- reading ---------------------------------------------------------------------------------------


@pytest.fixture
def three(notes: mk.Store) -> None:
    """Three memories in two directories."""
    for path in ("/projects/alpha/plan.md", "/projects/beta.md", "/units.md"):
        notes.write(path, f"# {path}\nSI units\n")


@pytest.mark.usefixtures("three")
def test_ls_rolls_directories_up_and_recursive_lists_all(shell: Shell) -> None:
    assert [each.path for each in shell.run("%memory ls")] == ["/projects/", "/units.md"]
    assert [each.path for each in shell.run("%memory ls /projects")] == ["/projects/alpha/", "/projects/beta.md"]
    assert [each.path for each in shell.run("%memory ls /projects/beta.md")] == ["/projects/beta.md"]
    assert len(shell.run("%memory ls -r")) == 3
    assert len(shell.run("%memory ls -r -n 2")) == 2


@pytest.mark.usefixtures("three")
def test_a_missing_path_is_told_its_neighbours(shell: Shell) -> None:
    for line in ("cat /unit.md", "ls /unit.md", "rm /unit.md -y", "mv /unit.md /b", "log /unit.md", "tree /unit.md"):
        with pytest.raises(errors.MemoryNotFoundError) as caught:
            shell.run(f"%memory {line}")
        assert "/units.md" in caught.value.hint


@pytest.mark.usefixtures("three")
def test_a_tree_is_drawn(shell: Shell) -> None:
    assert repr(shell.run("%memory tree")).splitlines() == [
        "/",
        "├── projects/",
        "│   ├── alpha/",
        "│   │   └── plan.md",
        "│   └── beta.md",
        "└── units.md",
    ]
    assert repr(shell.run("%memory tree /projects/alpha")).splitlines() == ["/projects/alpha", "└── plan.md"]
    assert repr(shell.run("%memory tree /units.md")).splitlines() == ["/units.md"]
    assert len(shell.run("%memory tree").paths) == 3


@pytest.mark.usefixtures("three")
def test_grep_finds_lines_below_a_path(shell: Shell) -> None:
    found = shell.run("%memory grep SI /projects")
    assert [(match.path, match.line) for match in found] == [("/projects/alpha/plan.md", 2), ("/projects/beta.md", 2)]
    assert len(shell.run("%memory grep -i si -n 1")) == 1
    assert shell.run(r"%memory grep \d+") == []
    with pytest.raises(errors.InvalidInputError):
        shell.run('%memory grep "("')


def test_cat_shows_a_memory_or_a_version_of_it(shell: Shell) -> None:
    shell.run("%%memory put /a.md\none\n")
    shell.run("%%memory put /a.md\ntwo\n")
    assert shell.run("%memory cat /a.md").content == "two\n"
    assert shell.run("%memory cat /a.md@1").content == "one\n"
    assert shell.run("%memory cat /a.md@-1").content == "one\n"
    assert shell.run(f"%memory cat {shell.run('%memory log /a.md')[1].id}").content == "one\n"
    with pytest.raises(errors.VersionNotFoundError):
        shell.run("%memory cat /a.md@7")


def test_fault_42_odd_paths_reach_the_right_memory(shell: Shell) -> None:
    for path in ("/my notes/it's.md", "/it's.md", "/a@b.md", "/a@3"):
        shell.ipython.user_ns["text"] = path
        shell.run(f'%memory put "{path}@head" --var text -q')
    assert shell.run('%memory cat "/my notes/it\'s.md"').content == "/my notes/it's.md"
    assert shell.run(r"%memory cat /my\ notes/it's.md").content == "/my notes/it's.md"
    assert shell.run("%memory cat /it's.md").content == "/it's.md"
    assert shell.run("%memory cat /a@b.md").content == "/a@b.md"
    assert shell.run("%memory cat /a@3@head").content == "/a@3"
    with pytest.raises(errors.InvalidPathError):
        shell.run("%memory cat -- -x.md")


# -- writing ---------------------------------------------------------------------------------------


def test_put_takes_the_body_a_file_or_a_variable(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_bytes(b"from a file\r\n")
    shell.ipython.user_ns.update(text="from a str", data=b"from bytes", number=3)
    assert shell.run("%%memory put /body.md\nfirst\n\nsecond {x} $y\n").path == "/body.md"
    shell.run(f"%memory put /file.md --from {tmp_path}/plan.md")
    shell.run("%memory put /text.md --var text")
    shell.run("%memory put /data.md --var data")
    found = {
        path: shell.run(f"%memory cat {path}").content for path in ("/body.md", "/file.md", "/text.md", "/data.md")
    }
    assert found == {
        "/body.md": "first\n\nsecond {x} $y\n",
        "/file.md": "from a file\r\n",
        "/text.md": "from a str",
        "/data.md": "from bytes",
    }


WITHOUT_ONE_TEXT: Final = (
    ("%memory put /a.md", "put has no text"),
    ("%%memory put /a.md\n", "the cell body is empty"),
    ("%memory put /a.md --var nothing", "there is no variable nothing"),
    ("%memory put /a.md --var number", "number is no text but int"),
    ("%memory put /a.md --from /no/such/file", "/no/such/file cannot be read: No such file or directory"),
    ("%%memory put /a.md --var number\nbody\n", "put takes its text from one place"),
    ("%%memory put /a.md@1\nbody\n", "/a.md@1 names a version"),
    ("%%memory put other:/a.md -s notes\nbody\n", "names the store other"),
)


def test_put_without_exactly_one_text_and_place_is_a_usage_error(shell: Shell) -> None:
    shell.ipython.user_ns["number"] = 3
    for cell, words in WITHOUT_ONE_TEXT:
        with pytest.raises(UsageError, match=words):
            shell.run(cell)
    assert shell.run("%memory ls -r") == []


def test_put_expects_what_it_is_told(shell: Shell) -> None:
    first = shell.run("%%memory put /a.md --expect absent\none\n")
    with pytest.raises(errors.ConflictError):
        shell.run("%%memory put /a.md --expect absent\ntwo\n")
    shell.run(f"%%memory put /a.md --expect {first.content_sha256}\ntwo\n")
    with pytest.raises(errors.PreconditionFailedError):
        shell.run(f"%%memory put /a.md --expect {first.content_sha256}\nthree\n")
    assert shell.run("%memory cat /a.md").content == "two\n"


def test_replace_takes_one_occurrence_or_all(shell: Shell) -> None:
    shell.run("%%memory put /a.md\nfeet and feet, inches\n")
    with pytest.raises(errors.InvalidInputError, match="occurs 2 times"):
        shell.run("%memory replace /a.md feet metres")
    shell.run("%memory replace /a.md feet metres --all")
    shell.run('%memory replace /a.md ", inches" ""')
    assert shell.run("%memory cat /a.md").content == "metres and metres\n"
    with pytest.raises(errors.InvalidInputError, match="does not occur"):
        shell.run("%memory replace /a.md yards metres")


@pytest.mark.usefixtures("three")
def test_mv_renames_a_memory_and_a_directory(shell: Shell) -> None:
    assert shell.run("%memory mv /units.md /prefs/units.md").count == 1
    assert repr(shell.run("%memory mv /projects/ /old/")) == "Moved 2 memories from /projects/ to /old/ in team-notes."
    assert [each.path for each in shell.run("%memory ls -r")] == [
        "/old/alpha/plan.md",
        "/old/beta.md",
        "/prefs/units.md",
    ]
    with pytest.raises(errors.PathConflictError):
        shell.run("%memory mv /old/beta.md /prefs/units.md")
    for target in ("other:/b.md", "/b.md@1"):
        with pytest.raises(UsageError, match="is no plain path"):
            shell.run(f"%memory mv /old/beta.md {target}")


@pytest.mark.usefixtures("three")
def test_rm_of_a_directory_needs_r_and_the_versions_stay(shell: Shell) -> None:
    with pytest.raises(UsageError, match="/projects is a directory"):
        shell.run("%memory rm /projects -y")
    assert shell.run("%memory rm /projects -r -y").count == 2
    assert repr(shell.run("%memory rm /units.md -y")) == "Deleted 1 memory in team-notes; the versions stay."
    assert shell.run("%memory ls -r") == []
    assert len(shell.run("%memory log")) == 6


def test_what_cannot_be_undone_is_refused_where_nobody_can_answer(shell: Shell) -> None:
    shell.run("%%memory put /a.md\none\n")
    shell.run("%%memory put /a.md\ntwo\n")
    for line, deed in {
        "rm /a.md": "rm of /a.md",
        "redact /a.md@1": "redaction of @1 of /a.md",
        "archive team-notes": "archive of team-notes",
        "drop team-notes": "drop of team-notes",
    }.items():
        with pytest.raises(errors.NotConfirmedError) as caught:
            shell.run(f"%memory {line}")
        assert caught.value.lines() == [
            f"NotConfirmedError: {deed} has to be confirmed, and nobody can be asked here",
            "Add -y to confirm it in the command.",
        ]
    assert [version.operation for version in shell.run("%memory log /a.md")] == ["modified", "created"]
    assert shell.run("%memory cat /a.md@1").content == "one\n"


# -- history ---------------------------------------------------------------------------------------


def test_log_is_newest_first_of_a_memory_or_the_store(shell: Shell) -> None:
    for text in ("one", "two", "three"):
        shell.run(f"%%memory put /a.md\n{text}\n")
    shell.run("%%memory put /b.md\nb\n")
    assert [version.ordinal for version in shell.run("%memory log /a.md")] == [3, 2, 1]
    assert [version.seq for version in shell.run("%memory log")] == [4, 3, 2, 1]
    assert [version.seq for version in shell.run("%memory log -n 2")] == [4, 3]
    assert len(shell.run("%memory log --df")) == 4


def test_diff_compares_the_last_two_or_any_two(shell: Shell) -> None:
    for text in ("one", "two", "three"):
        shell.run(f"%%memory put /a.md\n{text}\n")

    def signs(line: str) -> set[str]:
        shown = str(shell.run(f"%memory diff {line}")).splitlines()
        return {row for row in shown if row[:1] in "+-" and row[:3] not in ("+++", "---")}

    assert signs("/a.md") == {"-two", "+three"}
    assert signs("/a.md@1") == signs("/a.md @1") == signs("/a.md 1 -- head") == {"-one", "+three"}
    assert signs("/a.md@1 @2") == signs("/a.md @1 @-1") == {"-one", "+two"}
    with pytest.raises(UsageError, match="3 versions"):
        shell.run("%memory diff /a.md@1 @2 @3")
    third, second, first = (version.id for version in shell.run("%memory log /a.md"))
    assert signs(f"{first} {second}") == signs(f"@{first} @{second}") == {"-one", "+two"}
    assert signs(second) == {"-two", "+three"}
    shell.run(f"%memory redact {second} -y")
    assert shell.run(f"%memory diff {second} {third}").text_diff is None


def test_fault_25_restore_appends_recreates_and_refuses_a_redacted_text(shell: Shell) -> None:
    for text in ("one", "two", "three"):
        shell.run(f"%%memory put /a.md\n{text}\n")
    shell.run("%memory restore /a.md@1")
    assert [version.ordinal for version in shell.run("%memory log /a.md")] == [4, 3, 2, 1]
    assert shell.run("%memory cat /a.md").content == "one\n"
    shell.run("%memory redact /a.md @3 -y")
    with pytest.raises(errors.RedactedError):
        shell.run("%memory restore /a.md @3")
    shell.run("%memory rm /a.md -y")
    shell.run("%memory restore /a.md @2")
    assert shell.run("%memory cat /a.md").content == "two\n"


def test_fault_25_a_restore_is_refused_where_the_head_moved_after_it_was_shown(shell: Shell, notes: mk.Store) -> None:
    shell.run("%%memory put /a.md\none\n")
    shell.run("%%memory put /a.md\ntwo\n")
    shell.run("%memory diff /a.md")
    notes.write("/a.md", "somebody else's\n")
    with pytest.raises(errors.NotConfirmedError):
        shell.run("%memory restore /a.md@1")
    assert notes.read("/a.md") == "somebody else's\n"
    shell.run("%memory diff /a.md")
    shell.run("%memory restore /a.md@1")
    assert notes.read("/a.md") == "one\n"


def test_fault_25_y_restores_over_a_head_that_moved(shell: Shell, notes: mk.Store) -> None:
    shell.run("%%memory put /a.md\none\n")
    notes.write("/a.md", "somebody else's\n")
    shell.run("%memory restore /a.md@1 -y")
    assert notes.read("/a.md") == "one\n"


def test_a_restore_by_id_needs_no_path(shell: Shell) -> None:
    first = shell.run("%%memory put /a.md\none\n").memory_version_id
    shell.run("%%memory put /a.md\ntwo\n")
    shell.run(f"%memory restore {first}")
    assert shell.run("%memory cat /a.md").content == "one\n"
    for line in ("restore /a.md", "restore /a.md@1 @2", "redact /a.md"):
        with pytest.raises(UsageError, match="name one version"):
            shell.run(f"%memory {line}")


def test_redact_erases_one_text_and_never_the_head(shell: Shell) -> None:
    shell.run("%%memory put /a.md\nhunter2\n")
    shell.run("%%memory put /a.md\nask\n")
    assert shell.run("%memory redact /a.md@1 -y").redacted_at is not None
    with pytest.raises(errors.HeadRedactionError):
        shell.run("%memory redact /a.md@head -y")
    assert "hunter2" not in str(shell.run("%memory cat /a.md@1"))


def test_redact_names_the_runs_that_may_still_hold_the_text(
    shell: Shell, notes: mk.Store, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = notes.connection.database.runs
    shell.run("%%memory put /a.md\nhunter2\n")
    for _ in range(4):
        runs.begin(
            ids.mint("run"),
            session_id=ids.mint("sesn"),
            kind="live",
            model="claude-sonnet-5-5",
            prompt="Tidy",
            memory_store_ids=[notes.id],
            process=this_process(),
        )
    shell.run("%%memory put /a.md\nask\n")
    newest = [run.id for run in runs.list(limit=3).data]
    capsys.readouterr()
    shell.run("%memory redact /a.md@1 -y")
    assert (
        f"What was kept of 4 runs of agents may still hold this text: {', '.join(newest)} and 1 more. "
        "`%agent rm RUN` forgets a run.\n"
    ) in capsys.readouterr().out


# -- verify ----------------------------------------------------------------------------------------


def test_verify_says_in_a_sentence_that_a_store_is_whole(shell: Shell) -> None:
    shell.run("%%memory put /a.md\nA\n")
    counts = "(changes 1, versions left 1, memories 1)"
    whole = "is whole: every number, text and memory is as it was written"
    assert repr(shell.run("%memory verify")) == f"Team notes {whole} {counts}"
    assert shell.run("%memory verify") == []
    shell.run("%memory create Handbook")
    assert repr(shell.run("%memory verify handbook")) == f"Handbook {whole} (changes 0, versions left 0, memories 0)"
    with pytest.raises(errors.StoreNotFoundError):
        shell.run("%memory verify nothing")


def test_verify_has_a_line_for_each_thing_that_is_wrong(shell: Shell, notes: mk.Store, dsn: str) -> None:
    shell.run("%%memory put /a.md\nA\n")
    shell.run("%%memory put /b.md\nB\n")
    with psycopg.connect(dsn) as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE memkernel.memory_versions SET content = 'forged' WHERE path = '/a.md'")
        admin.execute("DELETE FROM memkernel.memories WHERE path = '/b.md'")
    found = shell.run("%memory verify")
    assert repr(found).splitlines() == [
        "Team notes: 4 things are wrong (changes 2, versions left 2, memories 1)",
        "",
        "the store says that it has 2 memories, and has 1",
        "change 1, /a.md: its text is not what was written: the sha256 is ccdd35168ab4…, and should be 06f961b802bc…",
        "change 1, /a.md: its text has 6 bytes, and should have 2",
        "change 2, /b.md: its memory is missing, though this newest version of it is no deletion",
    ]
    assert "change 2, /b.md: its memory is missing" in found._repr_html_()
    frame = shell.run("%memory verify --df")
    assert frame["seq"].isna().tolist() == [True, False, False, False]
    assert list(frame.columns) == ["seq", "path", "problem"]


# -- sql, config, help -----------------------------------------------------------------------------


@pytest.mark.usefixtures("three")
def test_sql_reads_and_nothing_else(shell: Shell) -> None:
    shell.run("%%memory sql -o found\nSELECT path FROM memories ORDER BY path")
    assert [row[0] for row in shell.value("found").rows] == [
        "/projects/alpha/plan.md",
        "/projects/beta.md",
        "/units.md",
    ]
    frame = shell.run("%%memory sql --df\nSELECT count(*) AS n FROM memory_versions")
    assert frame.to_dict("list") == {"n": [3]}
    with pytest.raises(errors.QueryRefusedError):
        shell.run("%%memory sql\nDELETE FROM memories")
    with pytest.raises(UsageError, match="has no query"):
        shell.run("%%memory sql\n\n")
    with pytest.raises(UsageError, match="sql needs a cell"):
        shell.run("%memory sql SELECT 1")


def test_config_shows_and_sets(shell: Shell) -> None:
    shown = repr(shell.run("%memory config"))
    assert all(name in shown for name in ("limit", "model", "render", "traceback"))
    assert repr(shell.run("%memory config limit 200")).split()[:2] == ["limit", "200"]
    for line, words in {
        "limit none": "'none' is no value of limit",
        "limit 0": "'0' is no value of limit",
        "traceback yes": "'yes' is no value of traceback",
        "colour red": "there is no setting 'colour'",
    }.items():
        with pytest.raises(errors.InvalidInputError, match=words):
            shell.run(f"%memory config {line}")


def test_help_lists_the_commands_and_explains_one(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("%memory help")
    everything = capsys.readouterr().out
    assert "%memory restore" in everything
    assert "%%memory sql" in everything
    shell.run("%memory help restore")
    assert "%memory restore /units.md@1" in capsys.readouterr().out
    shell.run("%memory sql --help")
    assert "%%memory sql --df" in capsys.readouterr().out
    assert shell.run("%memory rm --help") is None
    assert "-y" in capsys.readouterr().out
    assert "VERSION" in (shell.ipython.find_line_magic("memory").__doc__ or "")


def test_outside_a_notebook_an_agent_is_followed_as_text(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("%%agent -o run\nRemember that I prefer SI units\n")
    text = capsys.readouterr().out
    assert "[scripted, not a language model]" in text
    assert "→ memory create /memories/notes.md" in text
    assert shell.value("run").status == "done"
    with pytest.raises(UsageError, match="has no prompt"):
        shell.run("%%agent\n \n")


# -- what is common to all -------------------------------------------------------------------------


def test_results_go_to_variables_and_quiet_shows_nothing(shell: Shell) -> None:
    assert shell.run("%%memory put /a.md -o made -q\nA\n") is None
    assert shell.value("made").path == "/a.md"
    shell.run("x = %memory ls")
    assert [each.path for each in shell.value("x")] == ["/a.md"]
    assert shell.value("x").df().shape[0] == 1
    assert len(shell.run("%memory ls --df -o frame")) == 1
    assert list(shell.value("frame")["path"]) == ["/a.md"]


def test_a_body_where_none_belongs_is_an_error(shell: Shell) -> None:
    with pytest.raises(UsageError, match="ls takes no cell body"):
        shell.run("%%memory ls /\nbody\n")
    with pytest.raises(UsageError, match="browse takes no cell body"):
        shell.run("%%memory\nbody\n")


def test_variables_are_expanded_in_the_line_and_not_in_the_body(shell: Shell) -> None:
    shell.ipython.user_ns.update(name="/a.md", x="wrong")
    shell.run("%%memory put $name\n{x} $x\n")
    assert shell.run("%memory cat {name}").content == "{x} $x\n"


def test_a_variable_that_is_none_is_found_before_anything_is_done(shell: Shell) -> None:
    with pytest.raises(UsageError):
        shell.run("%%memory put /a.md -o not-a-name\nA\n")
    assert shell.run("%memory ls -r") == []


def test_fault_18_putting_the_same_text_again_makes_no_version(shell: Shell) -> None:
    for _ in range(2):
        shell.run("%%memory put /a.md\nA\n")
    assert len(shell.run("%memory log /a.md")) == 1
