"""Memory cgroups (v1) and swap files, for runs that must make do with little memory. Root is needed for both."""
import contextlib
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path("/sys/fs/cgroup/memory")
UNITS = {"MiB": 2**20, "GiB": 2**30}


def bytes_of(text):
    return int(float(text[:-3]) * UNITS[text[-3:]])


def can_be_made():
    return os.access(ROOT, os.W_OK)


@contextlib.contextmanager
def cgroup(limit_bytes):
    group = ROOT / f"penstock-peer-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
        yield group
    finally:
        for _ in range(50):  # the last process may still be on its way out
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


def entering(group):
    """What a command line begins with so that it runs in the group."""
    return ["sh", "-c", f"echo $$ > {group}/cgroup.procs && exec \"$@\"", "sh"]


def peak_bytes(group):
    return int((group / "memory.max_usage_in_bytes").read_text())


@contextlib.contextmanager
def swap_file(folder, gigabytes):
    path = pathlib.Path(folder) / "swap"
    subprocess.run(["fallocate", "-l", f"{gigabytes}G", str(path)], check=True)
    path.chmod(0o600)
    try:
        subprocess.run(["mkswap", str(path)], check=True, capture_output=True)
        subprocess.run(["swapon", str(path)], check=True)
        yield
    finally:
        subprocess.run(["swapoff", str(path)], check=False)
        path.unlink()
