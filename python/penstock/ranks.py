"""The processes that mpirun started, as one of them sees it."""

import atexit
import sys
import traceback
import weakref

from . import _core

open_sessions = weakref.WeakSet()
_joined = None


def join():
    """Joins the other processes, once; alone where mpirun did not start this one."""
    global _joined
    if _joined is None:
        _joined = _core.join_ranks()
        atexit.register(_leave)
        if _joined.size > 1:
            sys.excepthook = _end_all
    return _joined


def _leave():
    for session in list(open_sessions):
        session.close()
    _core.leave_ranks()


def _end_all(kind, error, trace):
    """An exception that nobody caught on this rank ends all of them: the others would wait for it."""
    sys.stderr.write(f"rank {_joined.rank}: ")
    traceback.print_exception(kind, error, trace)
    sys.stderr.flush()
    _joined.abort(1)
