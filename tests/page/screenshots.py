"""screenshots.py PAGE PICTURE.png [dark]: the whole page as docs/images has it, for people to look at."""

import sys

import browser

page, picture = sys.argv[1:3]
with browser.Browser(dark="dark" in sys.argv[3:]) as chromium:
    chromium.open(page)
    height = chromium.run("return document.documentElement.scrollHeight;")
    chromium.resize(1360, min(height + 140, 9000))  # what headless Chromium keeps for its frame
    chromium.run_async("setTimeout(arguments[0], 500)")  # charts fit their new size
    chromium.screenshot(picture)
    print(chromium.console() or "the console is empty")
