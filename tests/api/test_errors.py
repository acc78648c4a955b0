"""Exceptions as a client sees them (CONTRACT B.1.1)."""

from __future__ import annotations

import json
from inspect import getmembers, isclass
from typing import Any, cast

import pytest

from memkernel import errors
from memkernel.api.dispatch import Api
from memkernel.api.errors import TYPES, envelopes, response
from memkernel.errors import ApiError, DatabaseUnavailableError, MemkernelError
from memkernel.store import Database
from tests.api.calls import PRINCIPAL, Caller

DOCUMENTED = {
    *("invalid_request_error", "authentication_error", "permission_error", "not_found_error", "rate_limit_error"),
    *("memory_precondition_failed_error", "memory_path_conflict_error", "conflict_error", "request_too_large"),
    *("api_error", "timeout_error", "overloaded_error", "billing_error"),
}

EXPECTED: dict[MemkernelError, tuple[int, str]] = {
    errors.InvalidInputError("limit is 0"): (400, "invalid_request_error"),
    errors.InvalidPathError("x", "it must start with /"): (400, "invalid_request_error"),
    errors.ContentTooLargeError(2, 1): (400, "invalid_request_error"),
    errors.InvalidPageError(): (400, "invalid_request_error"),
    errors.StoreArchivedError("memstore_1"): (400, "invalid_request_error"),
    errors.StoreAttachedError("memstore_1", ["sesn_1"]): (400, "invalid_request_error"),
    errors.CapacityError(1): (400, "invalid_request_error"),
    errors.HeadRedactionError("memver_1"): (400, "invalid_request_error"),
    errors.HistoryPrunedError(1): (400, "invalid_request_error"),
    errors.StoreNotFoundError("memstore_1"): (404, "not_found_error"),
    errors.MemoryNotFoundError("mem_1"): (404, "not_found_error"),
    errors.VersionNotFoundError("memver_1"): (404, "not_found_error"),
    errors.SessionNotFoundError("sesn_1"): (404, "not_found_error"),
    errors.NotFoundError("there is no resource"): (404, "not_found_error"),
    errors.PreconditionFailedError("/a", "ab", None): (409, "memory_precondition_failed_error"),
    errors.PathConflictError("/a", "/a", "mem_1"): (409, "memory_path_conflict_error"),
    errors.AlreadyExistsError("n"): (409, "conflict_error"),
    errors.DatabaseUnavailableError(): (503, "api_error"),
    errors.DatabaseError("PostgreSQL refused: x"): (500, "api_error"),
    errors.SchemaTooOldError(1, 2): (500, "api_error"),
    errors.WorkspaceRoleError("ann may not make the role memkernel_api", ["CREATE ROLE"]): (500, "api_error"),
    errors.MemkernelError("x"): (500, "api_error"),
    ApiError(401, "no key"): (401, "authentication_error"),
    ApiError(403, "no right"): (403, "permission_error"),
    ApiError(404, "no route"): (404, "not_found_error"),
    ApiError(405, "no method"): (405, "invalid_request_error"),
    ApiError(408, "too slow"): (408, "timeout_error"),
    ApiError(413, "too large"): (413, "request_too_large"),
}


def told(error: Exception) -> tuple[int, dict[str, str], dict[str, Any]]:
    answer = response(error)
    return answer.status, dict(answer.headers), json.loads(answer.body)


@pytest.mark.parametrize("error", EXPECTED, ids=lambda error: type(error).__name__)
def test_an_errors_status_and_type(error: MemkernelError) -> None:
    """F.106."""
    status, headers, body = told(error)
    assert (status, body["error"]["type"]) == EXPECTED[error]
    assert body["error"]["type"] in DOCUMENTED
    assert body["type"] == "error"
    assert body["request_id"] == headers["request-id"]
    assert headers["content-type"] == "application/json"
    assert (str(error) in body["error"]["message"]) == (status < 500)


def test_every_error_has_an_answer() -> None:
    """No class of the tree is forgotten: at worst it is a 500 that tells nothing."""
    for name, kind in getmembers(errors, isclass):
        error: Exception = Exception.__new__(cast(type[MemkernelError], kind), "a sentence")
        error.__dict__.update({"saved": False, "status_code": 404, "headers": {}})
        error.__dict__.update({"conflicting_memory_id": "mem_1", "conflicting_path": "/a"})
        status, _, body = told(error)
        assert body["error"]["type"] in envelopes(status), name


def test_the_facts_of_a_path_conflict() -> None:
    """F.156; the id is `""` where the holder cannot be named (B.6)."""
    _, _, body = told(errors.PathConflictError("/a/b", "/a", "mem_1"))
    assert body["error"].keys() == {"type", "message", "conflicting_memory_id", "conflicting_path"}
    _, _, body = told(errors.PathConflictError("/a/b", "/a"))
    assert (body["error"]["conflicting_memory_id"], body["error"]["conflicting_path"]) == ("", "/a")


@pytest.mark.parametrize(
    ("error", "should_retry", "retry_after"),
    [
        (errors.PreconditionFailedError("/a", "ab", None), "false", None),
        (errors.PathConflictError("/a", "/a", "mem_1"), "false", None),
        (errors.AlreadyExistsError("n"), "false", None),
        (errors.InvalidInputError("x"), None, None),
        (DatabaseUnavailableError(saved=False), None, "1"),
        (DatabaseUnavailableError(saved=None), "false", "1"),
        (RuntimeError("x"), None, None),
    ],
    ids=repr,
)
def test_whether_a_client_should_try_again(error: Exception, should_retry: str | None, retry_after: str | None) -> None:
    """F.112: a conflict is final, and so is what may have been saved."""
    _, headers, _ = told(error)
    assert headers.get("x-should-retry") == should_retry
    assert headers.get("retry-after") == retry_after


def test_what_a_lost_database_is_told_as() -> None:
    """Whether something was changed, and not where the database is."""
    lost = "postgresql://ann@db:5432/notes does not answer: timeout"
    for saved, words in ((False, "nothing was changed"), (None, "it is unknown whether this was saved")):
        _, _, body = told(DatabaseUnavailableError(lost, saved=saved))
        assert body["error"]["message"] == f"the database is not available; {words}"


def test_headers_that_are_there_already_stay() -> None:
    answer = response(ApiError(405, "x", headers={"allow": "GET"}), {"request-id": "req_1", "x": "y"})
    assert (answer.headers["request-id"], answer.headers["x"], answer.headers["allow"]) == ("req_1", "y", "GET")
    assert json.loads(answer.body)["request_id"] == "req_1"


def test_a_message_is_valid_utf_8_and_short() -> None:
    _, _, body = told(errors.InvalidInputError("lone \ud800 " + "x" * 5_000))
    assert body["error"]["message"].startswith("lone \ud800 x")
    assert len(body["error"]["message"]) == 1_000
    response(errors.InvalidInputError("\udfff")).body.decode()


def test_only_documented_statuses_are_used() -> None:
    """B.1.1."""
    assert set(TYPES.values()) <= DOCUMENTED


def test_a_database_that_is_away(tmp_path: Any) -> None:
    """503, and no path, DSN or server in it."""
    with Database(f"postgresql://ann:secret@/notes?host={tmp_path}", reconnect_s=0.1) as database:
        call = Caller(Api(database, lambda _: PRINCIPAL).dispatch)
        for method, path, body in (
            ("GET", "/v1/memory_stores", None),
            ("POST", "/v1/memory_stores", {"name": "n"}),
            ("GET", "/v1/memory_stores/memstore_1", None),
        ):
            answer = call(method, path, body)
            assert answer.error(503, "api_error")["message"] == "the database is not available; nothing was changed"
            assert answer.headers["retry-after"] == "1"
        call("GET", "/v1/nothing").error(404)
        call("POST", "/v1/memory_stores", {}).refusal("name")
