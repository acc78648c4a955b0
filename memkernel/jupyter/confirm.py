"""Questions on stdin: before something is deleted, erased, or closed for ever."""

from __future__ import annotations

from IPython.core.error import StdinNotImplementedError

from memkernel.errors import NotConfirmedError


def confirm(deed: str, *, yes: bool, question: str, typed: str = "y") -> None:
    """Go on only if the person says so, or said `-y`.

    Args:
        deed: what would be done, as "rm of /a.md".
        yes: nothing needs to be asked.
        question: the sentence before the answer.
        typed: what has to be typed.

    Raises:
        NotConfirmedError: the answer was another one, or nobody can be asked here.
    """
    if yes:
        return
    try:
        answer = input(f"{question} ")
    except (StdinNotImplementedError, EOFError, OSError):
        raise NotConfirmedError(
            f"{deed} has to be confirmed, and nobody can be asked here", hint="Add -y to confirm it in the command."
        ) from None
    accepted = {"y", "yes"} if typed == "y" else {typed}
    if answer.strip() not in accepted:
        raise NotConfirmedError(f"{deed} was not confirmed", hint="Nothing was changed.")
