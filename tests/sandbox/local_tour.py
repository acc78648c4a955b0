"""A tour of a local sandbox in its own process: `local_tour.py LEVEL FOLDER`; what it saw is its output, as JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from memkernel.sandbox.base import Mount, SandboxSpec
from memkernel.sandbox.local import LocalSandbox
from memkernel.sandbox.toolbox import Toolbox


def tour(level: int | None, folder: Path) -> dict[str, object]:
    """Start one, use it, end it."""
    memory = folder / "mnt" / "memory"
    for name in ("notes", "book"):
        (memory / name).mkdir(parents=True, exist_ok=True)
    (memory / "book" / "a.md").write_text("SI\n")
    mounts = (Mount(memory / "notes", "/mnt/memory/notes"), Mount(memory / "book", "/mnt/memory/book", read_only=True))
    box = LocalSandbox(SandboxSpec("sesn_x", "tests", mounts), level=level)  # pyright: ignore[reportArgumentType] - argv
    box.start()
    tools = Toolbox(box)
    try:
        return {
            "level": box.level,
            "uid": box.run("import os; (os.getuid(), os.geteuid(), os.getgid())").result,
            "read": box.run("open('/mnt/memory/book/a.md').read()").result,
            "written": box.run("open('/mnt/memory/notes/b.md', 'w').write('kg')").status,
            "refused": box.run("open('/mnt/memory/book/b.md', 'w')").status,
            "bash": box.bash("cd; pwd; cat /mnt/memory/notes/b.md").stdout,
            "shell": tools.call("bash", {"command": "cd /mnt/memory/book; cat a.md; id -u"}).content,
            "kept": tools.call("write", {"file_path": "/mnt/memory/book/b.md", "content": "x"}).content,
            "host": box.run("open('/etc/passwd').readline()[:5]").result,
            "state": box.run("os.getpid() > 0").result,
            "died": box.run("os._exit(1)").status,
            "again": box.run("6 * 7").result,
            "owner": [(memory / "notes" / "b.md").stat().st_uid, *box.owner],
        }
    finally:
        box.stop()


if __name__ == "__main__":
    os.umask(0o077)
    print(json.dumps(tour(int(sys.argv[1]) or None, Path(sys.argv[2]))))
