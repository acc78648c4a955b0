"""Which clients an agent may speak through, and the one that it takes where none is given."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

import anthropic

# The one class that the whole synchronous family has in common (Anthropic, Bedrock, Vertex, Foundry, AWS …) has no
# public name; an isinstance check against the public ones would refuse the next member of the family.
from anthropic._base_client import (  # pyright: ignore[reportPrivateUsage]  # see above
    AsyncAPIClient,
    SyncAPIClient,
)
from anthropic.lib.bedrock import AnthropicBedrock, AnthropicBedrockMantle
from anthropic.lib.vertex import AnthropicVertex

from memkernel.agent import checks
from memkernel.errors import AgentError, InvalidInputError, NoApiKeyError, UnsupportedClientError
from memkernel.models import RunKind, Settings

if TYPE_CHECKING:
    from memkernel.agent.recording import Recording

Client: TypeAlias = anthropic.Anthropic
"""Its siblings for other platforms answer to the same names."""

DEFAULT_MODEL = "claude-sonnet-5-5"
SCRIPTED_MODEL = "scripted"
_EXTRAS: Final = {"boto3": "bedrock", "google.auth": "vertex"}


class Speaker(NamedTuple):
    """Who answers: a model, by way of a client; or a recording in its place."""

    client: Client
    model: str
    kind: RunKind
    recording: Recording | None = None


def choose(
    model: str | None,
    client: object | None,
    settings: Settings,
    *,
    replay: str | Path | None = None,
    speed: float = 1.0,
) -> Speaker:
    """Who answers an agent.

    Args:
        model: its name, or `scripted`; without one MEMKERNEL_MODEL, then `DEFAULT_MODEL`.
        client: the client to speak through; without one the SDK's own, and where the environment holds no key for
            it and no model was asked for, the scripted stand-in.
        settings: what the environment says. Where it says that this is a demonstration (MEMKERNEL_DEMO), the
            stand-in takes the place of MEMKERNEL_MODEL, too.
        replay: the recording that answers in a model's place: a name of `recording.shipped()`, or a file.
        speed: of the replay: 2 is twice as fast as it was recorded.

    Raises:
        InvalidInputError: the model's name is blank, or no text; a replay together with a model or a client; a speed
            without a replay.
        UnsupportedClientError: the client is asynchronous, or no Anthropic client.
        NoApiKeyError: a model was asked for by name, and there is no key.
        RecordingError: there is no such recording.
        AgentError: the SDK's login is broken, or a package that the client needs is missing.
    """
    model = checks.text_or_none("model", model, hint="Name one, or leave it out.")
    if replay is not None:
        return _replayed(model, client, replay, speed)
    if speed != 1.0:
        raise InvalidInputError("speed needs a replay", hint="A model answers as fast as it does.")
    wished = model or settings.model or DEFAULT_MODEL
    if client is not None:
        return Speaker(checked(client), wished, "live")  # also "scripted": nobody knows who answers to that name there
    real = None if wished == SCRIPTED_MODEL else from_settings(settings)
    if real is not None:
        return Speaker(real, wished, "live")
    asked = model if settings.demo else model or settings.model
    if asked not in (None, SCRIPTED_MODEL):
        raise NoApiKeyError
    from memkernel.agent.scripted import stand_in

    return Speaker(stand_in(), SCRIPTED_MODEL, "scripted")


def _replayed(model: str | None, client: object | None, name: str | Path, speed: float) -> Speaker:
    from memkernel.agent import recording, replay

    if model is not None or client is not None:
        what = "model" if client is None else "client"
        raise InvalidInputError(
            f"replay and {what} cannot both be given", hint="A recording answers in a model's place: leave one out."
        )
    loaded = recording.load(name)
    return Speaker(replay.client(loaded, speed), loaded.model, "recorded", loaded)


def checked(client: object) -> Client:
    """The client, if an agent can use it.

    Raises:
        UnsupportedClientError: it is asynchronous, or no client of the Anthropic family at all.
        NoApiKeyError: it has nothing to identify itself with.
        AgentError: it signs its requests with a package that is not installed.
    """
    if isinstance(client, AsyncAPIClient):
        raise UnsupportedClientError(client, use=_synchronous_twin(client))
    if not isinstance(client, SyncAPIClient):
        raise UnsupportedClientError(client)
    if isinstance(client, anthropic.Anthropic) and not _has_credentials(client):
        raise NoApiKeyError
    _check_packages(client)
    return cast(Client, client)


def _check_packages(client: SyncAPIClient) -> None:
    """Say now what the SDK would only say with the first request, and in other words for every client."""
    package = _package_of(client)
    if package and not _is_installed(package):
        name, extra = type(client).__name__, _EXTRAS[package]
        raise AgentError(
            f"{name} signs its requests with {package}, which is not installed",
            hint=f'Install it (pip install "anthropic[{extra}]"), or give {name} a key or a token.',
        )


def _package_of(client: SyncAPIClient) -> str | None:
    """The package that the client needs beside the SDK, as far as it is sure to need it."""
    match client:
        case AnthropicBedrock(api_key=None):
            return "boto3"
        case anthropic.AnthropicAWS() | AnthropicBedrockMantle() if client.aws_access_key:
            return "boto3"
        case AnthropicVertex(access_token=None, credentials=None):
            return "google.auth"
        case _:
            return None


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of `google.auth`, not even `google` is there
        return False


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
