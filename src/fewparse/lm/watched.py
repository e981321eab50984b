"""Run a Python module as the main program of a process that ends when its parent does.

Started as a script, with the name of the module and its arguments. Standard input is a pipe whose other end only
the parent holds: it is closed when the parent ends, even if the parent is killed.
"""

import os
import runpy
import sys
import threading

ORPHANED = 75


def end_with_parent() -> None:
    """Wait until the other end of standard input is closed, then end this process at once."""
    while os.read(0, 1024):
        pass
    os._exit(ORPHANED)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
