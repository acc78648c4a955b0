"""`%memory serve`: the Memory API from a kernel."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

import memkernel as mk
from tests.cluster.homes import wait_until
from tests.fix_kernel import Kernel

_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


def served_at(text: str) -> str:
    """The address that a command has told."""
    found = _ADDRESS.search(text)
    assert found, text
    return found[0]


def get(url: str) -> str:
    """What a client on this machine is answered."""
    request = Request(f"{url}/v1/memory_stores", headers={"x-api-key": "any"})
    with build_opener(ProxyHandler({})).open(request, timeout=30) as answer:
        return answer.read().decode()


def is_served(url: str) -> bool:
    """Whether somebody listens there."""
    host, _, port = url.removeprefix("http://").partition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def test_the_memory_of_a_notebook_is_served_and_told_how(kernel: Kernel, somebody_else: mk.Connection) -> None:
    reply = kernel.run("%memory serve --port 0")
    assert (reply.status, reply.stderr) == ("ok", "")
    url = served_at(reply.text)
    assert reply.text.splitlines() == [
        f"{url} serves the Memory API of {somebody_else.line} (MEMKERNEL_DSN)",
        "No key is asked for: on this machine any api_key passes.",
        f'  client = anthropic.Anthropic(base_url="{url}", api_key="any")',
        "  client.beta.memory_stores.list()",
    ]
    assert "Team notes" in get(url)


def test_the_lines_it_tells_run_in_the_notebook_itself(kernel: Kernel) -> None:
    told = kernel.run("%memory serve --port 0").text.splitlines()
    example = "\n".join(line.strip() for line in told[2:])
    reply = kernel.run(f"import anthropic\n{example}.data[0].name")
    assert (reply.status, reply.text) == ("ok", "'Team notes'")


def test_a_second_call_tells_the_same_address_and_stop_ends_it(kernel: Kernel) -> None:
    first = kernel.run("%memory serve --port 0").text
    assert kernel.run("%memory serve").text == first
    url = served_at(first)
    assert kernel.run("%memory serve --stop").text == f"{url} serves no longer."
    with pytest.raises(URLError):
        get(url)
    assert kernel.run("%memory serve --stop").text == "Nothing is served from this notebook."
    assert "Team notes" in get(served_at(kernel.run("%memory serve --port 0").text))


def test_a_port_that_is_taken_is_told_in_two_lines(kernel: Kernel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        reply = kernel.run(f"%memory serve --port {taken.getsockname()[1]}")
    assert (reply.status, reply.ename, len(reply.traceback)) == ("error", "ServeError", 2)
    assert reply.traceback[0].endswith("cannot be used: address already in use")
    assert kernel.run("%memory serve --stop").text == "Nothing is served from this notebook."


def test_it_goes_on_while_cells_run_and_an_interrupt_does_not_end_it(kernel: Kernel) -> None:
    url = served_at(kernel.run("%memory serve --port 0").text)
    message = kernel.send("import time; print('asleep', flush=True); time.sleep(60)")
    kernel.wait_until(message, lambda reply: "asleep" in reply.stdout)
    assert "Team notes" in get(url)
    kernel.interrupt()
    assert kernel.reply(message).ename == "KeyboardInterrupt"
    assert "Team notes" in get(url)


def test_it_survives_a_reload_and_another_connection_and_its_requests_show_nothing(
    kernel: Kernel, somebody_else: mk.Connection
) -> None:
    url = served_at(kernel.run("%memory serve --port 0").text)
    assert kernel.run("%reload_ext memkernel").stderr == ""
    assert kernel.run("%memory connect -q").status == "ok"
    somebody_else.create_store("Another")
    assert "Another" in get(url)
    reply = kernel.run("%memory serve")
    assert (served_at(reply.text), reply.stderr) == (url, "")


def test_an_unload_tells_that_it_goes_on(kernel: Kernel) -> None:
    url = served_at(kernel.run("%memory serve --port 0").text)
    assert f"Still serving: {url}." in kernel.run("%unload_ext memkernel").stdout
    assert "Team notes" in get(url)
    kernel.run("%load_ext memkernel")
    assert kernel.run("%memory serve --stop").text == f"{url} serves no longer."
    assert "Still serving" not in kernel.run("%unload_ext memkernel").stdout


def test_it_ends_with_the_kernel_that_is_shut_down_in_order(kernel: Kernel) -> None:
    url = served_at(kernel.run("%memory serve --port 0").text)
    get(url)
    kernel.shut_down()
    wait_until(lambda: not is_served(url))


def test_a_process_that_serves_ends_by_itself(dsn: str, tmp_path: Path) -> None:
    """Neither the server's thread nor the idle ones that have answered keep it."""
    program = """
import urllib.request
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
shell.run_line_magic("load_ext", "memkernel")
shell.run_line_magic("memory", "serve --port 0 -o served")
url = str(shell.user_ns["served"]).split()[0]
visitor = urllib.request.build_opener(urllib.request.ProxyHandler({}))
asked = urllib.request.Request(url + "/v1/memory_stores", headers={"x-api-key": "any"})
print(visitor.open(asked).status)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"MEMKERNEL_DSN": dsn, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["200"]), done.stderr


def test_help_tells_what_it_does(kernel: Kernel) -> None:
    told = kernel.run("%memory serve --help").stdout
    assert "--port" in told
    assert "--stop" in told
    assert "%memory serve" in kernel.run("%memory help").stdout
