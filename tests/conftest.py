"""The fixtures come from the fix_*.py plugins beside this file, one a resource."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How fast a busy machine makes examples, and how long one takes there, says nothing about the code.
settings.register_profile("memkernel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memkernel")

pytest_plugins = [
    "tests.fix_agent",
    "tests.fix_docker",
    "tests.fix_folders",
    "tests.fix_kernel",
    "tests.fix_local",
    "tests.fix_postgres",
    "tests.fix_sandbox",
    "tests.fix_server",
    "tests.fix_lab",  # last: it imports others, and pytest wants to load those itself
]
