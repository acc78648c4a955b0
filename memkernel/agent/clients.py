"""Which clients an agent may speak through, and the one that it takes where none is given."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, cast

import anthropic

# The one class that the whole synchronous family has in common (Anthropic, Bedrock, Vertex, Foundry, AWS …) has no
# public name; an isinstance check against the public ones would refuse the next member of the family.
from anthropic._base_client import (  # pyright: ignore[reportPrivateUsage]  # see above
    AsyncAPIClient,
    SyncAPIClient,
)

from memkernel.agent import checks
from memkernel.errors import AgentError, NoApiKeyError, UnsupportedClientError
from memkernel.models import RunKind, Settings

Client: TypeAlias = anthropic.Anthropic
"""Its siblings for other platforms answer to the same names."""

DEFAULT_MODEL = "claude-sonnet-5-5"
SCRIPTED_MODEL = "scripted"


class Speaker(NamedTuple):
    """Who answers: a model, by way of a client."""

    client: Client
    model: str
    kind: RunKind


def choose(model: str | None, client: object | None, settings: Settings) -> Speaker:
    """Who answers an agent.

    Args:
        model: its name, or `scripted`; without one MEMKERNEL_MODEL, then `DEFAULT_MODEL`.
        client: the client to speak through; without one the SDK's own, and where the environment holds no key for
            it and no model was asked for, the scripted stand-in.
        settings: what the environment says.

    Raises:
        InvalidInputError: the model's name is blank, or no text.
        UnsupportedClientError: the client is asynchronous, or no Anthropic client.
        NoApiKeyError: a model was asked for by name, and there is no key.
        AgentError: the SDK's login is broken.
    """
    model = checks.text_or_none("model", model, hint="Name one, or leave it out.")
    wished = model or settings.model or DEFAULT_MODEL
    if client is not None:
        return Speaker(checked(client), wished, "scripted" if wished == SCRIPTED_MODEL else "live")
    real = None if wished == SCRIPTED_MODEL else from_settings(settings)
    if real is not None:
        return Speaker(real, wished, "live")
    if model not in (None, SCRIPTED_MODEL):
        raise NoApiKeyError
    from memkernel.agent.scripted import stand_in

    return Speaker(stand_in(), SCRIPTED_MODEL, "scripted")


def checked(client: object) -> Client:
    """The client, if an agent can use it.

    Raises:
        UnsupportedClientError: it is asynchronous, or no client of the Anthropic family at all.
        NoApiKeyError: it has nothing to identify itself with.
    """
    if isinstance(client, AsyncAPIClient):
        raise UnsupportedClientError(client, use=_synchronous_twin(client))
    if not isinstance(client, SyncAPIClient):
        raise UnsupportedClientError(client)
    if isinstance(client, anthropic.Anthropic) and not _has_credentials(client):
        raise NoApiKeyError
    return cast(Client, client)


def _synchronous_twin(client: AsyncAPIClient) -> str:
    names = [kind.__name__ for kind in type(client).__mro__ if kind.__name__.startswith("AsyncAnthropic")]
    return f"anthropic.{names[0].removeprefix('Async')}" if names else "anthropic.Anthropic"


def _has_credentials(client: anthropic.Anthropic) -> bool:
    headers = {name.lower() for name in client.default_headers}
    known = (client.api_key, client.auth_token, client.credentials)
    # A subclass (AWS, Foundry, Google Cloud) signs its requests in ways of its own.
    return (
        type(client) is not anthropic.Anthropic or any(known) or not headers.isdisjoint({"authorization", "x-api-key"})
    )


def from_settings(settings: Settings) -> Client | None:
    """The SDK's own client with the key that the environment, or a login of the SDK's, holds; None without one.

    Raises:
        AgentError: a login was set up and cannot be read.
    """
    try:
        client = anthropic.Anthropic(api_key=settings.api_key, base_url=settings.api_base_url)
    except anthropic.CredentialsError as error:
        raise AgentError(str(error), hint='Or set ANTHROPIC_API_KEY, or use model="scripted".') from error
    if _has_credentials(client):
        return client
    client.close()
    return None
