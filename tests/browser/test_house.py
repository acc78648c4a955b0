"""The house that the other tests in the browser stand in, proved with a widget that is not ours."""

from __future__ import annotations

import pytest

from tests.fix_lab import Lab
from tests.lab_page import Seen

COUNTER = '''
import anywidget, traitlets
class Counter(anywidget.AnyWidget):
    _esm = """
    export default { render({ model, el }) {
      const button = document.createElement("button");
      const show = () => { button.textContent = `${model.get("count")} so far`; };
      button.onclick = () => { model.set("count", model.get("count") + 1); model.save_changes(); };
      model.on("change:count", show);
      show();
      el.append(button);
      el.classList.add("mk");
      el.dataset.ready = "yes";
    } };
    """
    count = traitlets.Int(0).tag(sync=True)
counter = Counter()
counter
'''


def test_a_widget_reaches_its_kernel_and_the_kernel_the_tests_database(lab: Lab, dsn: str) -> None:
    page = lab.open([COUNTER])
    page.run(1)
    button = page.widget(1).get_by_role("button")
    button.click()
    button.get_by_text("1 so far").wait_for()
    assert page.value("counter.count") == "1"
    assert page.value("__import__('os').environ['MEMKERNEL_DSN']") == repr(dsn)


def test_all_cells_are_run_and_the_last_is_waited_for(lab: Lab) -> None:
    page = lab.open(["import time; time.sleep(1)", "'over'"], load=False)
    page.run_all()
    assert page.text(2) == "'over'"
    assert page.save()["cells"][2]["outputs"][0]["data"]["text/plain"] == "'over'"


def test_a_saved_notebook_is_opened_again_without_a_kernel_and_by_somebody_else(lab: Lab) -> None:
    page = lab.open([COUNTER, "from IPython.display import HTML; HTML('<b onclick=\"1\">bold</b>')"])
    page.run(1)
    page.run(2)
    page.save()
    again = lab.reopen(page)
    assert again.text(1) == "Loading widget..."
    assert again.output(2).locator("b[onclick]").count() == 1
    assert lab.untrusted(again).output(2).locator("b:not([onclick])").count() == 1


@pytest.mark.parametrize(
    ("script", "error", "request_"),
    [
        ("setTimeout(() => { throw new Error('oops'); })", "oops", ""),
        ("console.error('told so')", "told so", ""),
        ("fetch('http://192.0.2.1/').catch(() => {})", "", "http://192.0.2.1/"),
    ],
)
def test_what_no_page_of_ours_may_do_is_seen(lab: Lab, script: str, error: str, request_: str) -> None:
    page = lab.open([])
    page.tab.evaluate(f"() => {{ {script}; }}")
    while lab.seen == Seen():
        page.tab.wait_for_timeout(20)
    page.tab.close()  # nothing more comes
    assert error in "".join(lab.seen.errors)
    assert "".join(lab.seen.requests) == request_
    lab.seen = Seen()
