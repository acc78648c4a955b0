"""`%%sandbox`: the cell runs in the box, its output appears as it comes, what became of its files comes last."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import UsageError

from memkernel.errors import CellFailedError, MemkernelError, SandboxError
from memkernel.jupyter.arguments import Parser, seconds
from memkernel.jupyter.command import Command
from memkernel.jupyter.commands.sandbox_options import (
    ask_of,
    makes_sandbox,
    puts_result,
    started,
    takes_policy,
    takes_sandbox,
)
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.reports import show_report
from memkernel.jupyter.streaming import LiveOutput, write_error
from memkernel.models import CellResult, SyncReport
from memkernel.render import duration_text

if TYPE_CHECKING:
    from memkernel.handle.sandbox import Sandbox


def _declare_sandbox(parser: Parser) -> None:
    parser.add_argument("--bash", action="store_true", help="the cell is a bash script, not Python")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, help="end the cell after this time; default: none"
    )
    takes_policy(parser, "error (default) puts yours aside, merge joins both where they do not overlap")
    parser.add_argument("--allow-wipe", action="store_true", help="delete the memories also where no file is left")
    takes_sandbox(parser)
    puts_result(parser, "the cell's result")
    makes_sandbox(parser)


def sandbox(notebook: Notebook, args: Namespace, body: str | None) -> None:
    """Run the cell in the sandbox that the line means, and start it where it does not run."""
    code = body or ""
    if not code.strip():
        raise UsageError('%%sandbox has no code\nWrite it below: print(open("/mnt/memory/team-notes/units.md").read())')
    ask = ask_of(notebook, args)
    if args.variable:
        notebook.shell.push({args.variable: None})  # whatever happens, no older result stays in it
    box = notebook.sandboxes.asked(args.name, ask) or started(notebook, args.name, ask, silent=args.silent)
    result = _Cell(notebook, args, box).run(code)
    if result.status != "ok":
        raise _failure(result)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell on its way through a sandbox."""

    notebook: Notebook
    args: Namespace
    box: Sandbox

    def run(self, code: str) -> CellResult:
        """Run it, and show what it did, also where that ends with an error.

        Raises:
            SyncConflictError, SyncError: not all that it wrote is saved.
            SandboxError: the sandbox is gone, or an interrupt came when no code ran.
        """
        run = self.box.bash if self.args.bash else self.box.run
        before, shown = self.box.report, None
        output = None if self.args.silent else LiveOutput()
        panel = self._show_panel()
        try:
            result = run(code, on_output=output, **self._options())
        except KeyboardInterrupt:  # before the code had begun, or after it: code that runs is ended and has a result
            raise SandboxError("the cell was interrupted", hint="`%sandbox sync` saves what it had written.") from None
        except MemkernelError as error:
            shown = self._tell(error, before)
            if isinstance(error, SandboxError) and self.box.status().state == "closed":
                self.notebook.sandboxes.retire(self.box)
            raise
        else:
            shown = result.report
            self._hand_over(result)
            return result
        finally:
            self.notebook.sandboxes.synced(self.box, shown)
            if panel is not None and output is not None and output.has_cleared:
                panel.close()
                self._show_panel()

    def _show_panel(self) -> Any:
        """The sandbox's panel, once: a later cell adds a line to the one that is there."""
        panel = self.box.panel()
        if self.args.silent or panel.is_watched or not self.notebook.outputs.are_live:
            return None
        return panel.show()

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"timeout_s": self.args.timeout, "allow_wipe": self.args.allow_wipe}
        if self.args.on_conflict is not None:
            options["on_conflict"] = self.args.on_conflict
        return options

    def _tell(self, error: MemkernelError, before: SyncReport | None) -> SyncReport | None:
        """Show what is known of a cell that ends with an error of the sandbox or of the sync, above that error."""
        result: CellResult | None = getattr(error, "result", None)
        report = self.box.report
        if result is not None:
            if result.error is not None and not self.args.silent:
                write_error("\n".join(result.error.traceback))
            self._hand_over(result)
            return result.report
        if report is None or report is before:
            return None
        if not self.args.silent:
            show_report(self.notebook, self.box, report)
        return report

    def _hand_over(self, result: CellResult) -> None:
        if self.args.variable:
            self.notebook.shell.push({self.args.variable: result})
        if self.args.silent:
            return
        for note in result.notes:
            write_error(note)
        if result.report is not None:
            show_report(self.notebook, self.box, result.report, duration_s=result.duration_s)


def _failure(result: CellResult) -> CellFailedError:
    """The error of a cell whose code did not run to its end: the cells below must not run."""
    after = f"after {duration_text(result.duration_s)}"
    if result.error is not None and result.status == "error":
        return CellFailedError(f"{result.error.ename}: {result.error.evalue}", result)
    said, hint = {
        "error": (f"the script ended with exit status {result.exit_code}", "What it had written is saved."),
        "timeout": (f"the cell took too long and was ended {after}", "What it had written is saved."),
        "interrupted": (f"the cell was interrupted {after}", "What it had written is saved."),
        "died": (f"the sandbox's kernel died {after}", "The next cell starts a new kernel; `%sandbox logs` may tell."),
        "out_of_memory": (
            f"the cell ran out of memory {after}",
            "The next cell starts a new kernel; `%sandbox stop` and `--memory 2g` give it more.",
        ),
    }[result.status]
    return CellFailedError(said, result, hint=hint)


SANDBOX: Final = Command(
    "",
    "Run the cell in a sandbox; its folders are memory stores.",
    _declare_sandbox,
    sandbox,
    (
        "%%sandbox",
        "%%sandbox --store team-notes --ro handbook",
        "%%sandbox --bash --timeout 60 -o result",
        "%%sandbox --on-conflict merge",
    ),
    body="always",
    of="sandbox",
)
