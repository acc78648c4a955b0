"""What a request asks, as those read it that answer in a model's place: the stand-in's rules, a recording. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from memkernel.agent import conversation
from memkernel.agent.conversation import Block, Message
from memkernel.agent.script import Body


class Asked(NamedTuple):
    """A request.

    Attributes:
        prompts: what was asked in the whole conversation; the last one is to be answered.
        replies: how many replies to it there are already.
        results: what their calls came back with, in order.
        newest: the results of the last reply alone.
        tools: the names of the tools that are offered.
        mounts: where the system prompt says that memory stores are, those that can be written first.
    """

    prompts: list[str]
    replies: int
    results: list[Block]
    newest: list[Block]
    tools: frozenset[str]
    mounts: list[str]

    @property
    def prompt(self) -> str:
        """What is to be answered; "" where nothing was said."""
        return self.prompts[-1] if self.prompts else ""


def read(body: Body) -> Asked:
    """Read a request of the Messages API."""
    prompts: list[str] = []
    replies, results, newest = 0, list[Block](), list[Block]()
    for message in body["messages"]:
        texts = _texts(message)
        if message["role"] == "user" and texts:
            prompts.append(texts[-1])
            replies, results, newest = 0, [], []
        elif message["role"] == "user":
            newest = [block for block in conversation.blocks(message) if block["type"] == "tool_result"]
            results += newest
        else:
            replies, newest = replies + 1, []
    tools = frozenset(str(tool.get("name")) for tool in body.get("tools") or ())
    return Asked(prompts, replies, results, newest, tools, _mounts(body.get("system") or ""))


def text_of(result: Block) -> str:
    """What a tool's result says."""
    content = result.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _texts(message: Message) -> list[str]:
    return [block["text"] for block in conversation.blocks(message) if block["type"] == "text"]


def _mounts(system: str | Iterable[Mapping[str, Any]]) -> list[str]:
    text = system if isinstance(system, str) else "\n".join(str(block.get("text")) for block in system)
    found = [attached for line in re.findall(r"^\{.*\}$", text, re.MULTILINE) if (attached := _attached(line))]
    return [path for _, path in sorted(found, key=lambda each: each[0])]


def _attached(line: str) -> tuple[bool, str] | None:
    """Whether the store is read-only, and where it is; None where the line does not tell of one."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    if not isinstance(told, dict) or not {"memory_store_id", "mount_path", "access"} <= told.keys():
        return None
    attached = cast("dict[str, object]", told)
    return attached["access"] == "read_only", str(attached["mount_path"])
