"""The memory tool `memory_20250818`. Knows no SDK; `agent/memory_tool.py` is the adapter for it.

Its answers are those of the official Python SDK's own local filesystem tool, string for string, but for these
(CONTRACT A.8, A.9):

1. `/memoriesX/a` is another root, not `/memories/X/a`.
2. NUL, and `..` in percent codes or behind backslashes, are refused; so is every path that no memory store accepts
   (CONTRACT B.5). Paths are brought to Unicode normal form C.
3. Missing and mistyped fields are told as `invalid memory tool input: …`, an unknown command as `Unknown command: …`.
4. A command that fails leaves no trace: no empty file, no directories made on the way.
5. Nothing of the machine reaches the model: no errno, no host path, no SQL.
6. Lone surrogates are refused, and nothing is stored.
7. `new_str` may be absent or null: the match is deleted.
8. A directory exists exactly while a memory lies below it, and is shown with 4K.
9. Where a file would have to be a directory, and where something would be moved into itself, a sentence says so.
10. A file has at most 102,400 bytes and a store 2,000 files, unless the settings say otherwise.
"""
