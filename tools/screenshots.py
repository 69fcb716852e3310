#!/usr/bin/env python3
"""Makes docs/images/report.png and live-line.png from a run on this machine. Needs chromium.

usage: tools/screenshots.py PENSTOCK [TRAIN_ARGUMENT ...]
"""
import html
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile

TERMINAL = """<!DOCTYPE html><html><head><meta charset="utf-8"/><style>body{margin:0;background:#14161a}
pre{font:14px/1.5 "DejaVu Sans Mono",monospace;color:#d9dde4;margin:0;padding:16px 18px}b{color:#8fbf6f;font-weight:400}
i{background:#d9dde4}</style></head><body><pre><b>$</b> %s<i> </i></pre></body></html>"""


def screenshot(page, image, size):
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                    "--blink-settings=preferredColorScheme=1", f"--window-size={size}", f"--screenshot={image}",
                    page.as_uri()], check=True, stderr=subprocess.DEVNULL)


def terminal_bytes(command):
    """What a command writes to a terminal of its own."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("sh", ["sh", "-c", 'stty cols 120; exec "$0" "$@"', *command])
    text = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.waitpid(pid, 0)
    return text.decode(errors="replace")


def main():
    penstock = sys.argv[1]
    arguments = sys.argv[2:] or "resnet50 --batch 16 --steps 5 --memory 600MiB --lr 0.01".split()
    images = pathlib.Path(__file__).resolve().parent.parent / "docs" / "images"
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.html"
        text = terminal_bytes([penstock, "train", *arguments, "--report", str(report)])
        screenshot(report, images / "report.png", "1040,1130")
        # Each state of the live line stands between two returns to its beginning.
        states = re.findall(r"step \d+/\d+  loss [^\r\n\x1b]*left", text)
        before = [line for line in re.split(r"[\r\n]+", text) if "in memory; training within" in line]
        lines = ["penstock train " + " ".join(arguments) + " --report report.html", *before, states[-1]]
        page = pathlib.Path(folder) / "terminal.html"
        page.write_text(TERMINAL % html.escape("\n".join(lines)))
        screenshot(page, images / "live-line.png", "1000,100")


main()
