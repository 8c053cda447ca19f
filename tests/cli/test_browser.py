"""The page in a real browser, where there is one: it fits, its script runs, nothing breaks out."""

import re
import shutil
import subprocess

import pytest
from support.command_line import EVIL_BALL

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
               None)
pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="needs Chromium"),
]
# Points at the middle of the first chart, and leaves a note about the width of the page.
PROBE = """<script>
const chart = document.querySelector("figure.chart > svg");
const box = chart.getBoundingClientRect();
chart.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2}));
document.body.dataset.overflow = document.documentElement.scrollWidth - window.innerWidth;
</script></body>"""


@pytest.mark.parametrize("width", [500, 1400])     # no window of it is narrower
@pytest.mark.parametrize("target", ["pend-i3", "andrews-i3", "evil"])
def test_in_a_browser(tether, target, width):
    source = tether.write(EVIL_BALL) if target == "evil" else target
    assert tether("report", source, "-o", "page.html")[0] == 0
    page = tether.folder / "page.html"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", PROBE), encoding="utf-8")
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
         f"--user-data-dir={tether.folder}/profile", f"--window-size={width},900",
         "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120,
    )
    assert "CONSOLE" not in done.stderr
    assert float(re.search(r'data-overflow="(-?\d+)"', done.stdout)[1]) <= 0
    shown = re.search(r"<figcaption>.*?<output>at t = (.*?)</output>", done.stdout)
    assert float(shown[1]) > 0
    assert "<img" not in done.stdout
    assert "<b>" not in done.stdout
