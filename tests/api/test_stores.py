"""Stores (CONTRACT B.3, B.4; F.9)."""

from __future__ import annotations

from tests.api.calls import Caller, at


def test_a_store_with_a_name_only(call: Caller) -> None:
    """F.117."""
    made = call("POST", "/v1/memory_stores", {"name": "Notes"}).ok
    assert made["id"].startswith("memstore_")
    assert (made["type"], made["name"], made["description"], made["metadata"]) == ("memory_store", "Notes", "", {})
    assert made["archived_at"] is None
    assert made["created_at"] == made["updated_at"]
    assert call("GET", at(made["id"])).ok == made
