"""binder/: what a hosted demo is built of (faults 57 and 58)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
BINDER: Final = ROOT / "binder"
SCRIPTS: Final = (BINDER / "postBuild", BINDER / "start")


def pins() -> dict[str, str]:
    """Each pinned package with its version."""
    lines = [line for line in (BINDER / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    requirements = [Requirement(line) for line in lines]
    assert all(re.fullmatch(r"==[\w.]+", str(one.specifier)) for one in requirements)
    return {canonicalize_name(one.name): str(one.specifier)[2:] for one in requirements}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_can_be_run_and_needs_no_other_account(script: Path) -> None:
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert text.startswith("#!/usr/bin/env bash\n")
    assert not re.search(r"\b(sudo|apt|apt-get|su)\b", re.sub(r"(?m)^#.*$", "", text))
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_all_that_the_package_needs_is_pinned_as_it_asks() -> None:
    pinned = pins()
    needed = [Requirement(one) for one in (*project()["dependencies"], *project()["optional-dependencies"]["lab"])]
    there = {"sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.12"}
    for one in needed:
        if one.marker is None or one.marker.evaluate(there):
            assert one.specifier.contains(pinned[canonicalize_name(one.name)]), one
    assert pinned["jupyterlab"].startswith("4.6.")


def test_its_python_is_one_that_the_package_supports() -> None:
    version = (BINDER / "runtime.txt").read_text().strip().removeprefix("python-")
    assert f"Programming Language :: Python :: {version}" in project()["classifiers"]


def test_what_starts_there_is_a_demo_and_replaces_the_script() -> None:
    command = [str(BINDER / "start"), "sh", "-c", 'echo "$MEMKERNEL_DEMO $PPID $*"', "sh", "two words"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["1", str(os.getpid()), "two", "words"]


def test_the_image_is_finished_as_an_ordinary_user_would(tmp_path: Path) -> None:
    """postBuild for real, in an environment of its own on top of this one, with no package index."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    packages = next((venv / "lib").glob("python*")) / "site-packages"
    (packages / "beneath.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run(
        [str(BINDER / "postBuild")],
        cwd=_checkout(tmp_path / "checkout"),
        env={
            "PATH": f"{venv}/bin:{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(home),
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip's spelling of: the build backend is here already
            "PIP_IGNORE_INSTALLED": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        },
        check=True,
        timeout=120,
    )
    overrides = json.loads((venv / "share/jupyter/lab/settings/overrides.json").read_text())
    assert overrides["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    assert (packages / "memkernel" / "notebooks").is_dir()


def _checkout(target: Path) -> Path:
    """What of the repository a builder needs."""
    target.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target)
    for name in ("memkernel", "notebooks", "binder"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    return target
