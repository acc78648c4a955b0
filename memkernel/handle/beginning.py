"""What a run begins with: the conversation so far, or the one that an earlier run left."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from memkernel.agent import checks, ledger
from memkernel.errors import InvalidInputError

if TYPE_CHECKING:
    from memkernel.agent.conversation import Block, Message
    from memkernel.agent.run import Run
    from memkernel.handle.equipment import Equipment
    from memkernel.store import Database


class Beginning(NamedTuple):
    """What a run begins with.

    Attributes:
        prompt: what is asked; "" where the model is to answer what is there.
        messages: the conversation before it.
        previous_run_id: the run whose conversation this is.
        kept: the messages, where they are not what that run left.
        session_id: whose session it goes on as; None is the agent's.
    """

    prompt: str
    messages: list[Message]
    previous_run_id: str | None
    kept: list[Message] | None
    session_id: str | None = None


def checked_prompt(prompt: object) -> str:
    """A prompt that a model could read.

    Raises:
        InvalidInputError: it is none.
    """
    return checks.text("the prompt", prompt, hint="Say what the agent shall do.")


def going_on(prompt: object, messages: object, before: Run | None, database: Database | None) -> Beginning:
    """A prompt after these messages; `before` is the agent's last run.

    Raises:
        InvalidInputError: it is no prompt, or they are no conversation.
    """
    asked, so_far = checked_prompt(prompt), checks.messages(messages)
    if before is not None and _keeps(database, before) and so_far == before.conversation:
        return Beginning(asked, so_far, before.id, None)
    return Beginning(asked, so_far, None, so_far or None)


def _keeps(database: Database | None, run: Run) -> bool:
    return database is not None and run.ledger is not None and run.ledger.has_kept(database.runs)


def resuming(run_id: str, prompt: object, equipment: Equipment) -> Beginning:
    """What an earlier run left, of this process or of another one.

    Raises:
        InvalidInputError: there is no database; or it is no prompt, or there is none and no answer is due.
        RunNotFoundError, RunRunningError, AgentError: as `ledger.take_over`.
    """
    asked = "" if prompt is None else checked_prompt(prompt)
    left = _left(run_id, equipment)
    if not asked and not left.is_due:
        raise InvalidInputError(f"run {run_id} owes no answer", hint="Say what to go on with: give a prompt.")
    messages = left.answered if asked else left.messages
    kept = None if messages == left.answered else messages
    return Beginning(asked, messages, run_id, kept, left.record.session_id)


def _left(run_id: str, equipment: Equipment) -> ledger.Left:
    database = equipment.database
    if database is None:
        raise InvalidInputError(
            "an agent without a store and a sandbox has no database, and no run in it to go on with",
            hint="Give it the store of the run: mk.Agent(store=…).",
        )
    stores = database.runs.retrieve(run_id).memory_store_ids

    def outcome(call: Block) -> str:
        return ledger.told_of_lost(call, partial(equipment.is_saved, stores, run_id), reading=equipment.reading)

    return ledger.take_over(database.runs, run_id, outcome)
