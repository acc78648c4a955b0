"""Who writes in these tests, and why."""

from __future__ import annotations

from typing import Final

from memkernel.models import Actor, Cause

ANN: Final = Actor("user_actor", "user_ann")
SESSION: Final = Actor("session_actor", "sesn_01")
KEY: Final = Actor("api_actor", "apikey_01")
WORKLOAD: Final = Actor("service_account_actor", "svac_01")
CAUSE: Final = Cause("run_01", "toolu_01")
