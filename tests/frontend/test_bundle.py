"""The bundle of the widgets: built from its sources, small, alone, and without a way for stored text to become HTML."""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.suites import FRONTEND, NODE, TYPESCRIPT, run

ROOT: Final = FRONTEND.parents[2]
BUNDLE: Final = FRONTEND.parent / "static" / "widgets.js"
SOURCES: Final = sorted((FRONTEND / "src").rglob("*.js"))
STYLES: Final = sorted((FRONTEND / "src").rglob("*.css"))
BUDGET_BYTES: Final = 60 * 1024
SVG: Final = "http://www.w3.org/2000/svg"
"""A name, not an address: nothing is fetched from it."""

MAKES_HTML: Final = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|createContextualFragment|DOMParser|srcdoc|eval)\b"
    r"|document\.write|new Function"
)
KINDS: Final = ("dependencies", "devDependencies", "optionalDependencies")
REACHES_OUT: Final = re.compile(r"\b(fetch|import|sendBeacon)\(|\b(XMLHttpRequest|WebSocket|EventSource|Worker)\b")


def named(path: Path) -> str:
    return str(path.relative_to(FRONTEND))


# -- what needs Node.js --------------------------------------------------------------------------


@pytest.mark.node
def test_the_suite_of_the_front_end_passes() -> None:
    told = run((NODE, "node_modules/vitest/vitest.mjs", "run", "--maxWorkers=1", "--no-color"), FRONTEND)
    assert re.search(r"Tests +\d+ passed \(\d+\)", told), told  # and no other number: none failed, none was left out


@pytest.mark.node
def test_the_bundle_is_what_its_sources_give(tmp_path: Path) -> None:
    run((NODE, "build.mjs", str(tmp_path / "widgets.js")), FRONTEND)
    built = (tmp_path / "widgets.js").read_bytes()
    assert built == BUNDLE.read_bytes(), "node memkernel/jupyter/frontend/build.mjs makes it anew"


def test_a_name_that_is_shortened_is_none_that_python_sends_or_takes() -> None:
    names = re.search(r"const NAMES = `([^`]*)`", (FRONTEND / "build.mjs").read_text())
    assert names
    widgets = "".join(path.read_text() for path in (FRONTEND.parent / "widgets").glob("*.py"))
    known = re.findall(r"[\"'](\w+)[\"']|^    (\w+)\b.*\.tag\(sync=True\)|[*,] (\w+):", widgets, re.M)
    assert {name for each in known for name in each} & set(names[1].split()) == set()


# -- what is in it -------------------------------------------------------------------------------


def test_it_is_within_its_budget() -> None:
    assert len(BUNDLE.read_bytes()) <= BUDGET_BYTES


def test_it_names_no_address() -> None:
    text = BUNDLE.read_text()
    assert set(re.findall(r"\w+://[\w./:-]*", text)) <= {SVG}
    assert not re.findall(r"url\(|@import|@font-face", text)


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_a_source_makes_no_html_and_reaches_nothing_but_its_neighbours(path: Path) -> None:
    text = path.read_text()
    assert MAKES_HTML.findall(text) == []
    assert REACHES_OUT.findall(text) == []
    assert [
        each for each in re.findall(r'^(?:import|export)\b[^;]*? from "([^"]+)"', text, re.M) if each[0] != "."
    ] == []


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_a_source_is_short(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert [(number, len(line)) for number, line in enumerate(lines, 1) if len(line) > 120] == []
    assert len(lines) <= 300


@pytest.mark.parametrize("path", STYLES, ids=named)
def test_a_style_names_classes_of_ours_only(path: Path) -> None:
    """The page is shared with Lab and with other widgets."""
    without_comments = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    selectors = re.findall(r"([^{};]+)\{", without_comments)
    assert [each.strip() for each in selectors if not each.strip().startswith("@") and ".mk" not in each] == []


def test_there_is_no_dependency_at_run_time_and_the_tools_are_pinned() -> None:
    package = json.loads((FRONTEND / "package.json").read_text())
    assert "dependencies" not in package
    assert [version for version in package["devDependencies"].values() if not re.fullmatch(r"[\d.]+", version)] == []


# -- what is installed ---------------------------------------------------------------------------


def test_the_wheel_has_the_bundle_and_nothing_it_was_made_of(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "memkernel/jupyter/static/widgets.js" in names
    assert [name for name in names if "frontend" in name or "node_modules" in name] == []


def test_the_source_archive_has_what_it_is_made_of_and_no_package_of_others(tmp_path: Path) -> None:
    (archive,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"memkernel/jupyter/frontend/src/index.js", "memkernel/jupyter/frontend/package-lock.json"} <= names
    assert [name for name in names if "node_modules" in name] == []


# -- what it is built and tested with ------------------------------------------------------------


@pytest.mark.parametrize("folder", [FRONTEND, TYPESCRIPT], ids=lambda folder: folder.name)
def test_the_lock_file_holds_all_that_its_packages_name(folder: Path) -> None:
    """A package published by halves can be locked, with an optional dependency that no registry has; npm ci then
    refuses the whole file."""
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    held = {path.rpartition("node_modules/")[2] for path in packages}
    named = {name for package in packages.values() for kind in KINDS for name in package.get(kind, ())}
    assert named - held == set()
