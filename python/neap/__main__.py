"""``python -m neap``: the ``neap`` command that this package brought; failing that, the one on the path."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import metadata
from typing import Optional


def _brought() -> Optional[str]:
    """From the list of files that were installed with this module, wherever they went."""
    try:
        files = metadata.files("neap")
    except metadata.PackageNotFoundError:
        return None
    for file in files or ():
        path = os.path.abspath(str(file.locate()))
        if file.name == "neap" and file.parent.name == "bin" and os.access(path, os.X_OK):
            return path
    return None


def main() -> int:
    """Becomes the command, with the arguments of this process. Returns only where there is none."""
    command = _brought() or shutil.which("neap")
    if command is None:
        print("neap: the command is not installed beside this module, nor is it on the path", file=sys.stderr)
        return 127
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
