import pathlib
import re
import subprocess
import sys

DEMO = pathlib.Path(__file__).parents[2] / "examples/python/fashion.py"


def test_a_quarter_of_the_memory():
    result = subprocess.run([sys.executable, str(DEMO), "--steps", "6"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    first, last = map(float, re.search(r"loss ([\d.]+) -> ([\d.]+);", result.stdout).groups())
    assert last < 0.9 * first
    assert float(re.search(r"([\d.]+) of what PyTorch takes", result.stdout).group(1)) <= 0.25
