"""The embedded PostgreSQL, and which server is used (POSTGRES.md). Knows no table.

    cluster = EmbeddedCluster()
    dsn = cluster.ensure()          # a server of this user's own: found running, or started now

or, by what the person and the environment say, `choose(explicit, settings)`.
"""

from __future__ import annotations

from memkernel.cluster.binaries import Binaries
from memkernel.cluster.choice import Chosen, choose
from memkernel.cluster.doctor import Finding, diagnose
from memkernel.cluster.dsn import describe_dsn, mask_dsn
from memkernel.cluster.embedded import ClusterStatus, EmbeddedCluster
from memkernel.cluster.places import home_directory

__all__ = [
    "Binaries",
    "Chosen",
    "ClusterStatus",
    "EmbeddedCluster",
    "Finding",
    "choose",
    "describe_dsn",
    "diagnose",
    "home_directory",
    "mask_dsn",
]
