"""Open every page of the built site in a headless browser, wide and narrow, from the disk.

    pip install playwright && playwright install chromium
    python tools/site/look.py [--browser /usr/bin/chromium] [--shots FOLDER]

Says where a page writes an error or a warning to the console, asks a network for anything, or is
wider than its window. Exits with 1 if there is such a page.
"""

import argparse
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

SITE = Path(__file__).parents[2] / "build/site"
WIDTHS = (1280, 390)


def troubles(browser: Browser, page: Path, width: int, shot: Path | None) -> list[str]:
    tab = browser.new_page(viewport={"width": width, "height": 900})
    found: list[str] = []
    tab.on("console", lambda message: found.append(f"{message.type}: {message.text}")
           if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: found.append(str(error)))
    tab.on("request", lambda request: found.append(f"asks for {request.url}")
           if request.url.startswith("http") else None)
    tab.goto(page.as_uri())
    tab.wait_for_timeout(100)
    root = "document.documentElement"
    if tab.evaluate(f"{root}.scrollWidth > {root}.clientWidth + 1"):
        found.append("wider than the window")
    if shot:
        tab.screenshot(path=shot, full_page=True)
    tab.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--browser", help="path of the browser, unless playwright's own")
    parser.add_argument("--shots", type=Path, help="folder for pictures of all pages")
    arguments = parser.parse_args()
    # a server shows 404.html, and from the root of the site only
    pages = sorted(page for page in SITE.rglob("*.html") if page.name != "404.html")
    bad = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.browser)
        for page in pages:
            name = page.relative_to(SITE).as_posix()
            for width in WIDTHS:
                file = f"{name.replace('/', '-')}-{width}.png"
                shot = arguments.shots / file if arguments.shots else None
                for trouble in troubles(browser, page, width, shot):
                    print(f"{name}, {width} wide: {trouble}")
                    bad += 1
        browser.close()
    print(f"{len(pages)} pages at {len(WIDTHS)} widths, {bad} troubles")
    return 1 if bad or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
