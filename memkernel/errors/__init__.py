"""Every error that memkernel raises on purpose, as one tree.

    MemkernelError
    ├── InvalidInputError (ValueError)          a value that no store accepts
    │   ├── InvalidPathError                        .path .reason
    │   ├── InvalidContentError                     .reason
    │   │   └── ContentTooLargeError                .size_bytes .limit_bytes
    │   ├── InvalidPageError                        a cursor of another listing, or garbage
    │   └── QueryError                              .line .column
    ├── NotFoundError (LookupError)
    │   ├── NoStoreInUseError                       a path names no store, and none is in use
    │   ├── StoreNotFoundError                      .store .near
    │   ├── MemoryNotFoundError                     .path_or_id .near
    │   ├── VersionNotFoundError                    .version
    │   ├── SessionNotFoundError                    .session
    │   ├── RunNotFoundError                        .run
    │   └── ApiKeyNotFoundError                     .api_key
    ├── AmbiguousStoreError                     .store .candidates
    ├── ConflictError                           the state is not what the caller thought
    │   ├── PreconditionFailedError                 .expected .actual .path
    │   │   └── SyncConflictError                       .report .result
    │   ├── PathConflictError                       .path .conflicting_memory_id .conflicting_path
    │   ├── AlreadyExistsError                      .name
    │   └── RunTakenOverError                       .run
    ├── RefusedError                            the rules of the store say no
    │   ├── StoreArchivedError                      .store
    │   ├── StoreAttachedError                      .store .sessions
    │   ├── SessionRunningError                     .session
    │   ├── RunRunningError                         .run
    │   ├── CapacityError                           .limit
    │   ├── HeadRedactionError                      .version
    │   ├── RedactedError                           .version
    │   ├── HistoryPrunedError                      .pruned_through_seq
    │   ├── WorkspaceRoleError                      .statements
    │   ├── QueryRefusedError                       SQL that could write, reach out, or is not one statement
    │   └── NotConfirmedError                       a person did not say yes, or could not be asked
    ├── DatabaseError
    │   ├── DatabaseUnavailableError                .saved .refused .memory_store_id .version_id
    │   ├── ServerTooOldError                       .server_version
    │   ├── SchemaTooOldError                       .found .needed
    │   └── SchemaTooNewError                       .found .known
    ├── ClusterError                            the embedded PostgreSQL
    │   ├── BinariesNotFoundError
    │   └── ServerStartError
    ├── ServeError                              the Memory API cannot be served
    ├── SandboxError                            a cell that fails is none: its result says so
    │   ├── EngineNotFoundError                     .tried
    │   ├── EngineError                             .result
    │   ├── ImageError                              .image
    │   ├── MountError                              .path
    │   └── SandboxClosedError                      .result
    ├── CellFailedError                         .result of a `%%sandbox` cell
    ├── SyncError                               .report .result
    │   └── SessionOverError
    ├── MemoryToolError                         one sentence that the model can act on
    ├── AgentError
    │   ├── UnsupportedClientError                  .client
    │   ├── NoApiKeyError
    │   ├── RecordingError                          none, unwritable, or of another run
    │   ├── UnisolatedModelError                    a live model, and a sandbox that does not isolate
    │   └── ModelRequestError                       .status_code .request_id
    └── ApiError                                .status_code .headers

`str(error)` is one sentence that names the thing; `hint` is one sentence on what to do about it. In a
notebook the two are shown as two lines instead of a traceback, unless `MemkernelError.show_traceback`
is set (`%memory config traceback on`).
"""

from __future__ import annotations

from memkernel.errors.absence import AmbiguousStoreError as AmbiguousStoreError
from memkernel.errors.absence import ApiKeyNotFoundError as ApiKeyNotFoundError
from memkernel.errors.absence import MemoryNotFoundError as MemoryNotFoundError
from memkernel.errors.absence import NoStoreInUseError as NoStoreInUseError
from memkernel.errors.absence import NotFoundError as NotFoundError
from memkernel.errors.absence import RunNotFoundError as RunNotFoundError
from memkernel.errors.absence import SessionNotFoundError as SessionNotFoundError
from memkernel.errors.absence import StoreNotFoundError as StoreNotFoundError
from memkernel.errors.absence import VersionNotFoundError as VersionNotFoundError
from memkernel.errors.agents import AgentError as AgentError
from memkernel.errors.agents import MemoryToolError as MemoryToolError
from memkernel.errors.agents import ModelRequestError as ModelRequestError
from memkernel.errors.agents import NoApiKeyError as NoApiKeyError
from memkernel.errors.agents import RecordingError as RecordingError
from memkernel.errors.agents import UnisolatedModelError as UnisolatedModelError
from memkernel.errors.agents import UnsupportedClientError as UnsupportedClientError
from memkernel.errors.api import ApiError as ApiError
from memkernel.errors.conflicts import AlreadyExistsError as AlreadyExistsError
from memkernel.errors.conflicts import ConflictError as ConflictError
from memkernel.errors.conflicts import PathConflictError as PathConflictError
from memkernel.errors.conflicts import PreconditionFailedError as PreconditionFailedError
from memkernel.errors.conflicts import RunTakenOverError as RunTakenOverError
from memkernel.errors.inputs import ContentTooLargeError as ContentTooLargeError
from memkernel.errors.inputs import InvalidContentError as InvalidContentError
from memkernel.errors.inputs import InvalidInputError as InvalidInputError
from memkernel.errors.inputs import InvalidPageError as InvalidPageError
from memkernel.errors.inputs import InvalidPathError as InvalidPathError
from memkernel.errors.inputs import QueryError as QueryError
from memkernel.errors.refusals import CapacityError as CapacityError
from memkernel.errors.refusals import HeadRedactionError as HeadRedactionError
from memkernel.errors.refusals import HistoryPrunedError as HistoryPrunedError
from memkernel.errors.refusals import NotConfirmedError as NotConfirmedError
from memkernel.errors.refusals import QueryRefusedError as QueryRefusedError
from memkernel.errors.refusals import RedactedError as RedactedError
from memkernel.errors.refusals import RefusedError as RefusedError
from memkernel.errors.refusals import RunRunningError as RunRunningError
from memkernel.errors.refusals import SessionRunningError as SessionRunningError
from memkernel.errors.refusals import StoreArchivedError as StoreArchivedError
from memkernel.errors.refusals import StoreAttachedError as StoreAttachedError
from memkernel.errors.refusals import WorkspaceRoleError as WorkspaceRoleError
from memkernel.errors.root import MemkernelError as MemkernelError
from memkernel.errors.sandboxes import CellFailedError as CellFailedError
from memkernel.errors.sandboxes import EngineError as EngineError
from memkernel.errors.sandboxes import EngineNotFoundError as EngineNotFoundError
from memkernel.errors.sandboxes import ImageError as ImageError
from memkernel.errors.sandboxes import MountError as MountError
from memkernel.errors.sandboxes import SandboxClosedError as SandboxClosedError
from memkernel.errors.sandboxes import SandboxError as SandboxError
from memkernel.errors.sandboxes import SessionOverError as SessionOverError
from memkernel.errors.sandboxes import SyncConflictError as SyncConflictError
from memkernel.errors.sandboxes import SyncError as SyncError
from memkernel.errors.servers import BinariesNotFoundError as BinariesNotFoundError
from memkernel.errors.servers import ClusterError as ClusterError
from memkernel.errors.servers import DatabaseError as DatabaseError
from memkernel.errors.servers import DatabaseUnavailableError as DatabaseUnavailableError
from memkernel.errors.servers import SchemaTooNewError as SchemaTooNewError
from memkernel.errors.servers import SchemaTooOldError as SchemaTooOldError
from memkernel.errors.servers import ServeError as ServeError
from memkernel.errors.servers import ServerStartError as ServerStartError
from memkernel.errors.servers import ServerTooOldError as ServerTooOldError
