"""One line that says where training stands: rewritten in a terminal, updated in a notebook, else now and then."""

import sys
import time


class ProgressLine:
    def __init__(self, enabled=True):
        self._enabled, self._handle, self._last = enabled, None, 0.0
        self._notebook = enabled and _in_notebook()
        self._terminal = enabled and sys.stderr.isatty()

    def tell(self, step, steps, loss, samples_per_second, seconds_left=None):
        if not self._enabled:
            return
        last = step == steps
        if not last and time.monotonic() - self._last < (0.1 if self._notebook or self._terminal else 10):
            return
        self._last = time.monotonic()
        line = f"step {step}{f'/{steps}' if steps else ''}  loss {loss:.4f}  {samples_per_second:.1f} samples/s"
        if seconds_left and not last:
            line += f"  {seconds_left:.0f} s left"
        if self._notebook:
            self._show(line)
        elif self._terminal:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        else:
            sys.stderr.write(line + "\n")

    def end(self):
        if self._enabled and self._terminal and not self._notebook:
            sys.stderr.write("\n")

    def _show(self, line):
        from IPython.display import HTML, display

        shown = HTML(f"<code>{line}</code>")
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)


def _in_notebook():
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
