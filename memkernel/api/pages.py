"""Page tokens on the wire: the record layer's own, signed, so that nobody can make one up (CONTRACT B.9).

What a token is bound to (the listing, the store, each filter) is the record layer's matter; the signature binds it to
the workspace and to this database.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from memkernel.errors import InvalidPageError

_PREFIX: Final = "page_"
_SIGNATURE_BYTES: Final = 15
_SIGNATURE_CHARS: Final = 20


def signed(token: str, workspace_id: str, key: bytes) -> str:
    """A token of the record layer as a client gets it."""
    position = token.removeprefix(_PREFIX)
    return f"{_PREFIX}{_signature(position, workspace_id, key)}{position}"


def opened(token: str, workspace_id: str, key: bytes) -> str:
    """A client's token as the record layer gave it out.

    Raises:
        InvalidPageError: no server of this database made it, or not in this workspace.
    """
    signature, position = token[len(_PREFIX) :][:_SIGNATURE_CHARS], token[len(_PREFIX) + _SIGNATURE_CHARS :]
    expected = _signature(position, workspace_id, key)
    if not token.startswith(_PREFIX) or not hmac.compare_digest(signature.encode(), expected.encode()):
        raise InvalidPageError
    return f"{_PREFIX}{position}"


def _signature(position: str, workspace_id: str, key: bytes) -> str:
    digest = hmac.digest(key, f"{workspace_id}\n{position}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest[:_SIGNATURE_BYTES]).decode()
