# SPDX-License-Identifier: ISC
"""Programs that see another time of day: libfaketime, which leaves the monotonic clock alone."""
import glob
import os

from harness import Skip, sanitized

LIBRARY = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")


def environment(offset):
    """What makes a program's clock differ by offset, such as "-2h"; a path: the file holds the
    offset, and may change at any time."""
    if sanitized():
        raise Skip("a sanitizer wants its own library first")
    if not LIBRARY:
        raise Skip("libfaketime is not installed (package libfaketime)")
    where = "FAKETIME_TIMESTAMP_FILE" if os.path.isabs(offset) else "FAKETIME"
    return {"LD_PRELOAD": LIBRARY[0], "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1", where: offset}
