"""What of a kernel's output may leave a sandbox (SANDBOX.md, Decision 3). Pure.

Text, images, LaTeX and JSON leave. HTML, SVG, Markdown and scripts run in the page of whoever looks at them, with that
person's rights, so they do not; what is left out is counted and said. Nothing here raises, whatever the sandbox sent.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, cast

Output = dict[str, Any]

ALLOWED: Final = ("text/plain", "image/png", "image/jpeg", "image/gif", "text/latex", "application/json")

_IMAGES: Final = ("image/png", "image/jpeg", "image/gif")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=\s]*")
# Of a terminal's escape sequences colours, cursor steps and erasing in a line stay; others set titles or clipboards.
_ESCAPES: Final = re.compile("\x1b(?!\\[[0-9;:]*[mABCDGK])|[\x80-\x9f]")
# LaTeX that links, styles or loads, where a page renders it.
_ACTIVE_LATEX: Final = re.compile(
    r"\\(href|url|style|class|cssId|data|require|texttip|mathtip|toggle|action|includegraphics|unicode|bbox|mmlToken"
    r"|[Hh]tml\w*)"
    r"(?![A-Za-z])"
)
_NAMES: Final = 8  # that are told of what was left out
_ERROR: Final = 1_000  # characters that are kept of an error that does not fit
_OUTPUTS: Final = 1_000  # that are kept however small the limit is
_OUTPUT: Final = 256  # bytes for which one more is kept
_DEEPEST: Final = 100
_MIME: Final = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}")


def clean(text: object) -> str:
    """A text that a terminal and a page can be given: no half characters, no escape sequence that does things."""
    found = text if isinstance(text, str) else str(text)
    if not found.isascii():
        found = found.encode("utf-8", "replace").decode()
    elif "\x1b" not in found:
        return found
    return _ESCAPES.sub("\N{REPLACEMENT CHARACTER}", found)


def size(value: Any) -> int:
    """Roughly how many bytes a value takes in a notebook."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
    if isinstance(value, Mapping):
        return sum(size(key) + size(each) for key, each in cast("Mapping[Any, Any]", value).items())
    if isinstance(value, list | tuple):
        return sum(size(each) + 1 for each in cast("list[Any]", value))
    return 8


class Outputs:
    """The outputs of one cell, as a notebook would keep them, up to `limit` bytes.

    `add` takes a message and gives what a front end is to show for it, if anything: an output of nbformat's shape, or
    one of `{"output_type": "clear_output", "wait": …}` and `{"output_type": "update_display_data", …}`. Outputs that
    have a display id carry it, prefixed, in `transient`; so no sandbox can write over a display of the notebook.
    """

    def __init__(self, limit: int, prefix: str) -> None:
        self._limit = limit
        self._prefix = prefix
        self._kept: list[Output] = []
        self._sizes: list[int] = []
        self._size = 0
        self._clear_first = False
        self._dropped: Counter[str] = Counter()
        self._elsewhere: dict[str, int] = {}  # of displays of earlier cells that were updated, the sizes
        self._beyond = 0
        self.result: str | None = None
        self.error: Output | None = None

    # -- what a message brings --

    def add(self, kind: str, content: Mapping[str, Any]) -> Output | None:
        """Take the content of a message on iopub."""
        if kind == "stream":
            return self._stream(content)
        if kind in ("display_data", "execute_result"):
            return self._display(kind, content)
        if kind == "update_display_data":
            return self._update(content)
        if kind == "error":
            return self._error(content)
        if kind == "clear_output":
            return self._clear(content)
        if kind.startswith("comm_"):
            self._drop("widgets")
        return None

    def _stream(self, content: Mapping[str, Any]) -> Output | None:
        name = "stderr" if content.get("name") == "stderr" else "stdout"
        text = clean(content.get("text", ""))
        whole = size(text)
        self._clear_if_due()
        room = self._limit - self._size
        if whole > room:
            text = text.encode("utf-8", "replace")[: max(room, 0)].decode("utf-8", "ignore")
            self._beyond += whole - size(text)
        if not text:
            return None
        last = self._kept[-1] if self._kept else None
        if last is not None and last["output_type"] == "stream" and last["name"] == name:
            last["text"].append(text)
            self._sizes[-1] += size(text)
            self._size += size(text)
        elif not self._keep({"output_type": "stream", "name": name, "text": [text]}, size(text)):
            return None
        return {"output_type": "stream", "name": name, "text": text}

    def _display(self, kind: str, content: Mapping[str, Any]) -> Output | None:
        data, metadata = self._bundle(content)
        if kind == "execute_result":
            self.result = data.get("text/plain")
        if not data:
            return None
        output: Output = {"output_type": kind, "data": data, "metadata": metadata}
        if kind == "execute_result":
            count = content.get("execution_count")
            output["execution_count"] = count if type(count) is int and 0 <= count < 1 << 53 else None
        self._clear_if_due()
        output |= self._transient(content)
        return output if self._keep(output, size(data)) else None

    def _update(self, content: Mapping[str, Any]) -> Output | None:
        data, metadata = self._bundle(content)
        transient = self._transient(content)
        if not data or not transient:
            return None
        weight, display = size(data), transient["transient"]["display_id"]
        places = [index for index, kept in enumerate(self._kept) if kept.get("transient") == transient["transient"]]
        before = [self._sizes[index] for index in places] or [self._elsewhere.get(display, -_OUTPUT)]
        grown = sum(weight - each for each in before)
        if grown > self._limit - self._size:
            self._beyond += weight
            return None
        self._size += grown
        if not places:
            self._elsewhere[display] = weight
        for index in places:
            self._kept[index] |= {"data": data, "metadata": metadata}
            self._sizes[index] = weight
        return {"output_type": "update_display_data", "data": data, "metadata": metadata, **transient}

    def _error(self, content: Mapping[str, Any]) -> Output | None:
        lines = content.get("traceback")
        traceback = [clean(line) for line in cast("list[Any]", lines)[:1000]] if isinstance(lines, list) else []
        name, value = clean(content.get("ename", ""))[:_ERROR], clean(content.get("evalue", ""))
        error: Output = {"output_type": "error", "ename": name, "evalue": value, "traceback": traceback}
        self._clear_if_due()
        if self.error is None:  # that it failed has to be seen
            if size(error) > self._limit - self._size:
                self._beyond += size(error)
                error |= {"evalue": value[:_ERROR], "traceback": []}
            self._put(error, size(error))
        elif not self._keep(error, size(error)):
            return None
        self.error = error
        return error

    def _clear(self, content: Mapping[str, Any]) -> Output:
        wait = bool(content.get("wait"))
        self._clear_first = True
        if not wait:
            self._clear_if_due()
        return {"output_type": "clear_output", "wait": wait}

    def page(self, payload: object) -> Output | None:
        """What the pager would show (`name?`); other payloads, such as the next cell's text, are left out."""
        if not isinstance(payload, Mapping):
            return None
        found = cast("Mapping[str, Any]", payload)
        if found.get("source") == "page" and isinstance(found.get("data"), Mapping):
            return self._display("display_data", {"data": {"text/plain": found["data"].get("text/plain", "")}})
        self._drop(clean(found.get("source", "payload"))[:60])
        return None

    def left_out(self, number: int) -> None:
        """Bytes of messages that were too large to be read at all."""
        self._beyond += number

    # -- what is kept --

    def _drop(self, name: str) -> None:
        known = name in self._dropped or len(self._dropped) < _NAMES
        self._dropped[name if known else "other data"] += 1

    def _keep(self, output: Output, weight: int) -> bool:
        """Keep one more output; whether there is room. Many small ones are no less a flood than a few large ones."""
        if weight > self._limit - self._size or len(self._kept) > _OUTPUTS + self._limit // _OUTPUT:
            self._beyond += weight
            return False
        self._put(output, weight)
        return True

    def _put(self, output: Output, weight: int) -> None:
        self._kept.append(output)
        self._sizes.append(weight)
        self._size += weight

    def _clear_if_due(self) -> None:
        if self._clear_first:
            self._kept, self._sizes, self._size, self._clear_first = [], [], 0, False
            self._elsewhere.clear()

    def _transient(self, content: Mapping[str, Any]) -> Output:
        transient = content.get("transient")
        found = cast("Mapping[str, Any]", transient).get("display_id") if isinstance(transient, Mapping) else None
        return {"transient": {"display_id": f"{self._prefix}-{clean(found)[:200]}"}} if found is not None else {}

    def kept(self) -> tuple[Output, ...]:
        """The outputs that a notebook would save now."""
        return tuple(_saved(output) for output in self._kept)

    def stream(self, name: str) -> str:
        """The kept text of `stdout` or `stderr`."""
        streams = (output for output in self._kept if output["output_type"] == "stream" and output["name"] == name)
        return "".join(text for output in streams for text in output["text"])

    def notes(self) -> list[str]:
        """What was left out, in sentences."""
        notes: list[str] = []
        if self._dropped:
            names = ", ".join(f"{name} ({number})" if number > 1 else name for name, number in self._dropped.items())
            notes.append(f"left out: {names}; only text, images, LaTeX and JSON leave a sandbox")
        if self._beyond:
            notes.append(f"left out: {_megabytes(self._beyond)} of output beyond {_megabytes(self._limit)}")
        return notes

    # -- data --

    def _bundle(self, content: Mapping[str, Any]) -> tuple[Output, Output]:
        """The data that may leave, and of its metadata an image's size."""
        data: Output = {}
        found = content.get("data")
        for mime, value in cast("Mapping[Any, Any]", found).items() if isinstance(found, Mapping) else ():
            allowed = _allowed(mime, value)
            if allowed is not None:
                data[mime] = allowed
            else:
                self._drop(mime if isinstance(mime, str) and _MIME.fullmatch(mime) else "unknown data")
        return data, _sizes_of_images(content.get("metadata"), data)


def _allowed(mime: object, value: Any) -> Any:
    if mime not in ALLOWED or (mime != "application/json" and not isinstance(value, str)):
        return None
    if mime in _IMAGES:
        return value if _BASE64.fullmatch(value) else None
    if mime == "text/latex" and _ACTIVE_LATEX.search(value):
        return None
    return _clean_json(value, _DEEPEST) if mime == "application/json" else clean(value)


def _clean_json(value: Any, deepest: int) -> Any:
    """The same value; None where it is nested deeper than that."""
    if not deepest:
        return None
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(key): _clean_json(each, deepest - 1) for key, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_clean_json(each, deepest - 1) for each in cast("list[Any]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _sizes_of_images(metadata: object, data: Mapping[str, Any]) -> Output:
    found: Output = {}
    for mime in _IMAGES:
        sizes = cast("Mapping[str, Any]", metadata).get(mime) if isinstance(metadata, Mapping) else None
        if mime in data and isinstance(sizes, Mapping):
            kept = {
                name: number
                for name, number in cast("Mapping[str, Any]", sizes).items()
                if name in ("width", "height") and type(number) in (int, float) and 0 <= number < 1 << 20
            }
            found |= {mime: kept} if kept else {}
    return found


def _saved(output: Output) -> Output:
    if output["output_type"] == "stream":
        return output | {"text": "".join(output["text"])}
    return {name: value for name, value in output.items() if name != "transient"}


def _megabytes(number: int) -> str:
    return f"{number / 1e6:,.1f} MB"
