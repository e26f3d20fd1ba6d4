"""Reads and writes the files of a folder that may come from a stranger.

A file is read only if it is a regular file of a bounded size, and no link: nothing
waits for a pipe, nothing fills the memory, and a report holds nothing of files
elsewhere. Control characters are replaced where a file is read, so all that is read
may be shown. A file is written beside its old version and then replaces it, so a
reader never sees a part of it, and a link in the folder is replaced and not
followed.
"""

import contextlib
import csv
import errno
import json
import os
import re
import shutil
import stat
import tempfile

LARGEST = 1 << 30  # bytes of a CSV file: a million steps of four workers
LINE = 1 << 16  # bytes of one row
HUGE = 1e100  # products of a few smaller numbers are still numbers


class Error(Exception):
    """One line for the user: what is wrong, with the values, and what to try."""


def visible(text):
    """The text without control characters, which would move a terminal's cursor or
    end a row."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", "?", str(text))


# What may help where a file or a folder cannot be made, in the words of the C programs.
REMEDIES = {errno.ENOSPC: "df, or out= on another disk",
            **dict.fromkeys((errno.EACCES, errno.EROFS, errno.ENOENT, errno.ENOTDIR),
                            "a folder that you may write to")}


def reason(error):
    """Why a call of the system failed, with what to try."""
    text, remedy = getattr(error, "strerror", error), REMEDIES.get(
        getattr(error, "errno", None))
    return f"{text}; try: {remedy}" if remedy else text


def _open_regular(path, flags):
    """A descriptor of a regular file. It waits for no FIFO."""
    try:
        fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as e:
        if getattr(e, "errno", 0) == errno.ELOOP:
            raise Error(f"{visible(path)}: a link, not a regular file; try: remove it") \
                from None
        why = reason(e) if flags & os.O_CREAT else getattr(e, "strerror", e)
        raise Error(f"{visible(path)}: {why}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Error(f"{visible(path)}: not a regular file; try: the path of a file")
    return fd


def open_regular(path, follow=False):
    """Opens a regular file for reading, as bytes. The caller closes it. A link is
    followed only if the user named it."""
    return os.fdopen(_open_regular(path, os.O_RDONLY | (0 if follow else os.O_NOFOLLOW)),
                     "rb")


def create(path):
    """Opens a regular file, new or emptied, for text. The caller closes it. A link is
    refused."""
    fd = _open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW)
    os.ftruncate(fd, 0)
    return os.fdopen(fd, "w", encoding="utf-8")


def read_text(path, most=1 << 22, follow=False):
    """The text of a regular file of at most `most` bytes."""
    with open_regular(path, follow) as f:
        data = f.read(most + 1)
    if len(data) > most:
        raise Error(f"{visible(path)}: more than {most} bytes")
    return data.decode("utf-8", "replace")


def read_lines(path, most, follow=False):
    """The lines of such a file, without control characters."""
    lines = re.split(r"\r?\n", read_text(path, most, follow).lstrip("\ufeff"))
    return [visible(line.replace("\t", " ")) for line in lines]


def _cleaned(value):
    if isinstance(value, dict):
        return {visible(k): _cleaned(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_cleaned(v) for v in value]
    return visible(value) if isinstance(value, str) else value


def read_json(path):
    """The object in a JSON file. Its texts have no control characters."""
    try:
        value = _cleaned(json.loads(read_text(path)))
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
        names, rows = None, csv.reader(_lines(f, path))
        try:
            for count, cells in enumerate(rows):
                if names is None:
                    names = cells
                elif len(cells) == len(names):
                    yield dict(zip(names, cells))
                else:
                    raise Error(f"{visible(path)}: row {count} has {len(cells)} cells, "
                                f"the header has {len(names)}")
        except csv.Error as why:
            raise Error(f"{visible(path)}: line {rows.line_num}: {why}") from None


def _lines(f, path):
    while line := f.readline(LINE):
        if not line.endswith(b"\n"):
            if len(line) == LINE:
                raise Error(f"{visible(path)}: a row has more than {LINE} bytes")
            return
        yield visible(line.rstrip(b"\r\n").decode("utf-8", "replace")) + "\n"


def number(text):
    """A cell as a number; None if it is empty, no number, NaN or too large."""
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if abs(value) < HUGE else None


def whole(text, least, largest):
    """The same as an int from `least` to `largest`; None if it is none."""
    value = number(text)
    return int(value) if value is not None and value == value // 1 and \
        least <= value <= largest else None


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
    except FileExistsError:
        raise Error(f"{visible(path)}: a file; try: the name of a folder") from None
    except OSError as e:
        raise Error(f"{visible(path)}: {reason(e)}") from None
    return path


def remove(path):
    """Removes a file, a link, or a folder with all that it has, if it is there."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
    except OSError as e:
        raise Error(f"{visible(path)}: {e.strerror}") from None


@contextlib.contextmanager
def replace(path):
    """A temporary file's path; at the end it replaces `path`, after an error it is
    removed. A folder or a device is not replaced; a link is, and not followed."""
    temporary = None
    try:
        if os.path.lexists(path) and stat.S_IFMT(os.lstat(path).st_mode) in (
                stat.S_IFDIR, stat.S_IFCHR, stat.S_IFBLK):
            raise Error(f"{visible(path)}: not a regular file; try: the name of a file")
        fd, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".",
                                         prefix=".written-")
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(fd, 0o666 & ~mask)
        os.close(fd)
        yield temporary
        os.replace(temporary, path)
    except OSError as e:
        raise Error(f"{visible(path)}: {reason(e)}") from None
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
