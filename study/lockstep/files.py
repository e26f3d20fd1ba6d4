"""Reads and writes the files of a folder that may come from a stranger.

A file is read only if it is a regular file of a bounded size: nothing waits for
a pipe, and nothing fills the memory. A file is written beside its old version
and then replaces it, so a reader never sees a part of it, and a link in the
folder is replaced and not followed.
"""

import contextlib
import csv
import json
import math
import os
import re
import stat
import tempfile

LARGEST = 1 << 30  # bytes of a CSV file: a million steps of four workers
LINE = 1 << 16  # bytes of one row


class Error(Exception):
    """One line for the user: what is wrong, with the values, and what to try."""


def visible(text):
    """The text without control characters, which would move a terminal's cursor or
    end a row."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", "?", str(text))


def open_regular(path):
    """Opens a regular file for reading, as bytes. The caller closes it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as e:
        raise Error(f"{visible(path)}: {getattr(e, 'strerror', e)}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Error(f"{visible(path)}: not a regular file; try: remove it")
    return os.fdopen(fd, "rb")


def read_text(path, most=1 << 22):
    """The text of a regular file of at most `most` bytes."""
    with open_regular(path) as f:
        data = f.read(most + 1)
    if len(data) > most:
        raise Error(f"{visible(path)}: more than {most} bytes")
    return data.decode("utf-8", "replace")


def read_json(path):
    """The object in a JSON file."""
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Error(f"{visible(path)}: not a JSON object")
    return value


def read_csv(path):
    """The rows of a CSV file as dicts. An incomplete last row is left out: the file
    may still grow. No rows if there is no such file."""
    if not os.path.lexists(path):
        return
    with open_regular(path) as f:
        if os.fstat(f.fileno()).st_size > LARGEST:
            raise Error(f"{visible(path)}: more than {LARGEST} bytes")
        names = None
        for number, cells in enumerate(csv.reader(_lines(f, path))):
            if names is None:
                names = cells
            elif len(cells) == len(names):
                yield dict(zip(names, cells))
            else:
                raise Error(f"{visible(path)}: row {number} has {len(cells)} cells, the "
                            f"header has {len(names)}")


def _lines(f, path):
    while line := f.readline(LINE):
        if not line.endswith(b"\n"):
            if len(line) == LINE:
                raise Error(f"{visible(path)}: a row has more than {LINE} bytes")
            return
        yield line.decode("utf-8", "replace").replace("\0", "?")


def number(text):
    """A cell as a number; None if it is empty, no number or NaN."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(value) else value


def make_folder(path, *parts):
    """Makes the folder path/part/part.. and returns its path. A link in the place of
    a part is refused: it may lead out of the folder."""
    try:
        os.makedirs(path, exist_ok=True)
        for part in parts:
            path = os.path.join(path, part)
            if os.path.islink(path):
                raise Error(f"{visible(path)}: a link, not a folder; try: remove it")
            os.makedirs(path, exist_ok=True)
    except OSError as e:
        raise Error(f"{visible(path)}: {e.strerror}") from None
    return path


@contextlib.contextmanager
def replace(path):
    """A temporary file's path; at the end it replaces `path`, after an error it is
    removed."""
    temporary = None
    try:
        fd, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".",
                                         prefix=".next-")
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(fd, 0o666 & ~mask)
        os.close(fd)
        yield temporary
        os.replace(temporary, path)
    except OSError as e:
        raise Error(f"{visible(path)}: {e.strerror}") from None
    finally:
        if temporary and os.path.lexists(temporary):
            os.unlink(temporary)


def write_text(path, text):
    """Replaces a text file as a whole."""
    with replace(path) as temporary, open(temporary, "w", encoding="utf-8",
                                          errors="replace") as f:
        f.write(text)


def write_csv(path, rows):
    """Replaces a CSV file. The columns are those of the first row."""
    with replace(path) as temporary, open(temporary, "w", newline="",
                                          encoding="utf-8", errors="replace") as f:
        out = csv.writer(f, lineterminator="\n")
        for i, row in enumerate(rows):
            if not i:
                out.writerow(row)
            out.writerow(_cell(v) for v in row.values())


def _cell(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    return f"{value:.10g}" if isinstance(value, float) else visible(value)
