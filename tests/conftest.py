"""The fixtures come from the fix_*.py plugins beside this file, one a resource."""

from __future__ import annotations

pytest_plugins = [
    "tests.fix_agent",
    "tests.fix_docker",
    "tests.fix_folders",
    "tests.fix_kernel",
    "tests.fix_local",
    "tests.fix_postgres",
    "tests.fix_sandbox",
]
