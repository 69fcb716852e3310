"""Sizes of memory as people write them."""

import re

from ._core import UserError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def bytes_of(size, what="memory"):
    """Bytes of a number or of a text with a unit.

    >>> bytes_of("2GiB"), bytes_of("1.5 MB"), bytes_of(4096)
    (2147483648, 1500000, 4096)
    """
    if isinstance(size, int) and not isinstance(size, bool):
        count = size
    else:
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", size) if isinstance(size, str) else None
        if match is None or match.group(2).upper() not in _UNITS:
            raise UserError(f"{what}: {size!r} is no size; write bytes as a number, or a text such as '800MiB' or '2GB'")
        count = int(float(match.group(1)) * _UNITS[match.group(2).upper()])
    if not 0 < count < 2**62:
        raise UserError(f"{what}: {size!r} is no memory that a process can take")
    return count


def text_of(size_bytes):
    """Three significant digits and a binary unit.

    >>> text_of(812 * 2**20)
    '812 MiB'
    """
    value, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit in ("B", "KiB", "MiB") else f"{value:.2f} {unit}"
