"""A first start in a bare container: no network at all, and 64 kB of /dev/shm.

It takes a mount and a network namespace. Where those may not be made (root in Docker may not), the test does not
exist, and the summary at the end says that it was not run.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import IS_ROOT, MAY_ISOLATE
from tests.cluster.homes import Home, Observer
from tests.cluster.people import current_user, isolated

if IS_ROOT and MAY_ISOLATE:

    @pytest.fixture
    def isolated_home() -> Iterator[Home]:
        """A home of somebody who sees neither a network nor the machine's shared memory."""
        ground = Path(tempfile.mkdtemp(prefix="mk-", dir="/tmp"))  # not in memory: that is hidden from them
        ground.chmod(0o755)
        home = Home(ground / "home", Observer(isolated(current_user())))
        yield home
        home.delete()
        home.observer.leave()
        shutil.rmtree(ground)

    @pytest.mark.as_root
    def test_a_first_start_needs_neither_a_network_nor_shared_memory(isolated_home: Home) -> None:
        kernel = isolated_home.running_kernel()
        assert kernel("[line.split(':')[0].strip() for line in open('/proc/net/dev')][2:]") == ["lo"]
        assert kernel("os.statvfs('/dev/shm').f_blocks * os.statvfs('/dev/shm').f_frsize") == 65_536
        assert isolated_home.rows("SELECT count(*) FROM generate_series(1, 1000)") == [[1000]]
