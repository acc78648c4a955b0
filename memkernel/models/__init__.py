"""The frozen records that every floor speaks: the SDK's nouns with the SDK's field names.

Times are aware UTC datetimes, sizes are bytes of UTF-8, hashes are 64 lowercase hex digits.
Sources: CONTRACT B.3 (store), B.5 (memory), B.10 (version), B.11 (actor).
"""

from __future__ import annotations

from memkernel.models.api_keys import ApiKey as ApiKey
from memkernel.models.cells import CellError as CellError
from memkernel.models.cells import CellResult as CellResult
from memkernel.models.cells import CellStatus as CellStatus
from memkernel.models.cells import ConflictPolicy as ConflictPolicy
from memkernel.models.cells import HeldBack as HeldBack
from memkernel.models.cells import Outcome as Outcome
from memkernel.models.cells import RefusedFile as RefusedFile
from memkernel.models.cells import ReportLine as ReportLine
from memkernel.models.cells import StoreReport as StoreReport
from memkernel.models.cells import SyncConflict as SyncConflict
from memkernel.models.cells import SyncReport as SyncReport
from memkernel.models.lineages import Holder as Holder
from memkernel.models.lineages import Lineage as Lineage
from memkernel.models.records import ABSENT as ABSENT
from memkernel.models.records import Absent as Absent
from memkernel.models.records import Actor as Actor
from memkernel.models.records import ActorType as ActorType
from memkernel.models.records import Cause as Cause
from memkernel.models.records import Change as Change
from memkernel.models.records import GrepMatch as GrepMatch
from memkernel.models.records import Memory as Memory
from memkernel.models.records import MemoryPrefix as MemoryPrefix
from memkernel.models.records import MemoryStore as MemoryStore
from memkernel.models.records import MemoryVersion as MemoryVersion
from memkernel.models.records import Operation as Operation
from memkernel.models.records import Page as Page
from memkernel.models.records import Pruned as Pruned
from memkernel.models.records import SearchHit as SearchHit
from memkernel.models.records import SearchResult as SearchResult
from memkernel.models.records import ServerStatus as ServerStatus
from memkernel.models.records import View as View
from memkernel.models.runs import RunEvent as RunEvent
from memkernel.models.runs import RunKind as RunKind
from memkernel.models.runs import RunRecord as RunRecord
from memkernel.models.runs import RunStatus as RunStatus
from memkernel.models.runs import Usage as Usage
from memkernel.models.sessions import Access as Access
from memkernel.models.sessions import AgentReference as AgentReference
from memkernel.models.sessions import Attachment as Attachment
from memkernel.models.sessions import AttachmentParams as AttachmentParams
from memkernel.models.sessions import BudgetLimit as BudgetLimit
from memkernel.models.sessions import SessionRecord as SessionRecord
from memkernel.models.sessions import SessionStatus as SessionStatus
from memkernel.models.settings import DEFAULT_WORKSPACE as DEFAULT_WORKSPACE
from memkernel.models.settings import RENDER as RENDER
from memkernel.models.settings import Limits as Limits
from memkernel.models.settings import Settings as Settings
from memkernel.models.timeline import ChangeKind as ChangeKind
from memkernel.models.timeline import Point as Point
from memkernel.models.timeline import StoreAsOf as StoreAsOf
from memkernel.models.timeline import StoreChange as StoreChange
from memkernel.models.tools import ToolAnswer as ToolAnswer
from memkernel.models.verified import StoreProblem as StoreProblem
from memkernel.models.verified import Verified as Verified
