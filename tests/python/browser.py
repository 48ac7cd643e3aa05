"""A headless Chromium that opens a page, runs a few lines in it as a reader would act, and tells what it saw."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Runs after the page's own script, in the page: `probe` is what the test asks, a function body that returns anything JSON can hold.
DRIVER = """<script>
addEventListener("load", () => setTimeout(async () => {
  const seen = document.createElement("pre");
  seen.id = "seen-by-the-test";
  try { seen.textContent = JSON.stringify(await (async () => { %s })()); }
  catch (error) { seen.textContent = JSON.stringify({ thrown: String(error) }); }
  document.body.append(seen);
}, 200));
</script>"""
UNESCAPE = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&nbsp;", "\u00a0"), ("&amp;", "&"))


class Browser:
    def __init__(self, folder: pathlib.Path):
        self.program = next(filter(None, map(shutil.which, NAMES)), None)
        if self.program is None:
            pytest.skip("there is no Chromium; scripts/setup python installs it where the distribution has it")
        self.folder = folder

    def run(self, page: pathlib.Path, *options: str, width: int = 1280, dark: bool = False) -> str:
        """stdout; no console message of the page may be there, and no request may have left it."""
        command = [self.program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
                   f"--user-data-dir={self.folder / 'profile'}", "--enable-logging=stderr", "--virtual-time-budget=8000",
                   f"--window-size={width},900", "--hide-scrollbars", *options, page.as_uri()]
        if dark:
            command[1:1] = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
        assert done.returncode == 0 and not console, console or done.stderr[-2000:]
        return done.stdout

    def ask(self, page: pathlib.Path, probe: str, **options):
        """What `probe` returns, run in the page."""
        driven = self.folder / f"driven-{page.name}"
        driven.write_text(page.read_text() + DRIVER % probe)
        document = self.run(driven, "--dump-dom", **options)
        found = re.search(r'<pre id="seen-by-the-test">(.*?)</pre>', document, re.DOTALL)
        assert found and 'data-ready="true"' in document, document[-2000:]
        text = found[1]
        for escaped, plain in UNESCAPE:
            text = text.replace(escaped, plain)
        return json.loads(text)

    def picture(self, page: pathlib.Path, to: pathlib.Path, height: int = 3000, **options):
        self.run(page, f"--screenshot={to}", f"--window-size={options.pop('width', 1280)},{height}", **options)
        return to
