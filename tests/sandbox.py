"""Calls the package that reads runs on the folder of a stranger, in a copy that may be
changed, and checks what must be so whatever the folder holds.

A command is called in a child process of the test, which is faster than a new program
and shows every exception.
"""

import functools
import html.parser
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sys
import tempfile
import traceback

TREE = pathlib.Path(__file__).resolve().parent.parent
LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
sys.path.insert(0, str(TREE / "study"))
os.environ["LOCKSTEP_PROGRAM"] = LOCKSTEP
try:
    import jinja2  # noqa: F401
except ImportError:  # lockstep takes this Python, which has it
    python = os.environ.get("LOCKSTEP_PYTHON") or "/usr/bin/python3"
    if sys.executable == python:
        print("skipped: no jinja2")
        sys.exit(77)
    os.execv(python, [python, *sys.argv])

from lockstep import figures
from lockstep.main import main as lockstep_main
from lockstep.page import TAGS, template

template()  # for all children
SECRET = "c0ffee-of-another-file"
TOUCH = "touch${IFS}PWNED"
PAYLOADS = (
    f"x';{TOUCH};'", f'0.5,x"||system("{TOUCH}")||"', f"$({TOUCH})", f"`{TOUCH}`",
    f"' ; system '{TOUCH}", f'"; system("{TOUCH}"); "', f"@{TOUCH}", f"| {TOUCH}",
    "<script>alert(1)</script>", "\" onmouseover=alert(1) x=\"",
    "'><img src=q onerror=alert(1)>", "]]><!--><script>alert(1)</script>-->",
    "{{ 7*7 }}{% for x in y %}", "=1+1", "\x1b[31mred\u009b2J",
    "a\nlockstep: b\r\n,c", "\ud800\udfff", "../../../../etc", "%s%n%1$s", "")
PATH = os.environ["PATH"]
ALL = [name for name, _ in figures.names()]
NUMBERS = (1e999, -1e999, float("nan"), -1, 0, 1e300, 5e-324, True, None, [], {}, "x",
           10 ** 400, [[[[]]]], {"a": {"b": 1}}, ["a", 1, None], "1e999", 2.5)
INI = """[experiment]
title = A stranger's
question = What?
expect = Nothing
figures = {figures}
baseline = one batch=1
repeat = 2
[base]
model = nano
layers = 1
context = 16
steps = 6
eval = 3
eval_batches = 1
threads = 1
[matrix]
batch = 1, 2
[cell one]
seed = 1
[cell two]
sync = ring
workers = 2
"""


class Page(html.parser.HTMLParser):
    """Fails at an element or attribute that could run or load something."""

    TAGS = set("html head meta title style body h1 h2 h3 p div table thead tbody tr th td "
               "span br figure pre code b details summary".split()) | {
                   tag.lower() for tag in TAGS}

    def handle_starttag(self, tag, attrs):
        assert tag in self.TAGS, tag
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("src", "action"), name
            assert name not in ("href", "xlink:href") or value.startswith("#"), value

    def handle_comment(self, data):
        raise AssertionError(data)


def call(*words, cwd, seconds=200):
    """(exit status, standard output, standard error, MiB of memory) of a command. A
    wait ends it, by SIGALRM."""
    pipes = [tempfile.TemporaryFile() for _ in range(2)]
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            signal.alarm(seconds)
            os.chdir(cwd)
            for k, pipe in enumerate(pipes, 1):
                os.dup2(pipe.fileno(), k)
            sys.argv[1:] = map(str, words)
            status = lockstep_main()
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status, used = os.wait4(pid, 0)
    said = []
    for pipe in pipes:
        pipe.seek(0)
        said.append(pipe.read().decode("utf-8", "surrogateescape"))
        pipe.close()
    return os.waitstatus_to_exitcode(status), *said, used.ru_maxrss / 1024


def files_of(folder, but=None):
    """{path: contents, target or kind, and time} of all that is below a folder."""
    found = {}
    for at, folders, names in os.walk(folder):
        if but and pathlib.Path(at) == but:
            folders.clear()
            continue
        for name in names + folders:
            path = os.path.join(at, name)
            is_ = os.lstat(path)
            found[path] = (os.readlink(path) if os.path.islink(path) else
                           open(path, "rb").read() if os.path.isfile(path) and
                           is_.st_size < 1 << 20 else is_.st_mode, is_.st_mtime_ns
                           if not os.path.isdir(path) else 0)
    return found


class Sandbox:
    """A folder with a copy of the stranger's, and with files that must not change."""

    def __init__(self, folder, clean):
        self.folder, self.clean = folder, clean
        self.given = folder / "given"  # by the stranger
        self.cwd = folder / "cwd"
        self.cwd.mkdir(parents=True)
        (folder / "outside").mkdir()
        self.victim = folder / "outside" / "victim"
        self.victim.write_text(f"{SECRET},{SECRET}\n{SECRET}\n")
        self.renew()

    def renew(self, wanted=()):
        """Begins with a new copy, with these figures."""
        shutil.rmtree(self.given, ignore_errors=True)
        shutil.copytree(self.clean, self.given, symlinks=True)
        ini = self.given / "x.ini"
        ini.write_text(ini.read_text().replace("none", " ".join(wanted) or "none"))

    def run(self, *words, why="", most=400):
        """Calls a command and checks what must always be so. Returns its status and
        all that it printed."""
        before = files_of(self.folder, self.given)
        status, out, err, used = call(*words, cwd=self.cwd)
        about = (why, words, status, out[-2000:], err[-2000:])
        assert status in (0, 1), about
        assert "Traceback" not in err, about
        lines = err.splitlines()
        assert all(line.startswith("lockstep: ") for line in lines), about
        left_out = len([*figures.names()]) if words[0] == "report" and status == 0 else 1
        assert len(lines) <= left_out and (status == 0 or lines or out), about
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]",
                             (out + err).encode("utf-8", "surrogateescape").decode(
                                 "latin-1")), about
        assert files_of(self.folder, self.given) == before, about
        assert not [*self.folder.rglob("PWNED")], about
        assert SECRET not in out + err, about
        assert used < most, (used, about)
        page = self.given / "report.html"
        if status == 0 and words[0] == "report" and page.is_file():
            text = page.read_text()
            Page().feed(text)
            assert SECRET not in text, about
        return status, out + err


def leaves(value, path=()):
    """Paths of all that is no object or list in a JSON value."""
    if isinstance(value, dict):
        for k, v in value.items():
            yield from leaves(v, (*path, k))
    else:
        yield path


def put(value, path, new):
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def every_text(folder, *words):
    """Makes each text of run.json and summary.json the next of these words."""
    for path in folder.glob("cells/*/r[12]/*.json"):
        if path.name == "trace.json":
            continue
        payloads = itertools.cycle(words)
        value = json.loads(path.read_text())
        for at in list(leaves(value)):
            if at[-1] == "pace" and len(words) == 1:
                continue  # losses of runs that slept are not compared
            if at[-1] == "inject":
                continue  # as asked: the cell's
            if at[0] != "asked" and isinstance(functools.reduce(
                    lambda v, k: v[k], at, value), str):
                put(value, at, next(payloads))
        for name in "machine", "versions", "training", "effective":
            if name in value:
                value[name][next(payloads)] = next(payloads)
        if "training" in value:  # in which cells differ
            value["training"]["lr"] = words[0] + path.parent.parent.name
        path.write_text(json.dumps(value))


def kinds_of(path, victim):
    """(a name, a function that makes it) of what may be in the place of a file."""
    def bind():
        socket.socket(socket.AF_UNIX).bind(os.path.relpath(path))

    def sparse():
        with open(path, "wb") as f:
            f.truncate(3 << 30)
    return (("pipe", lambda: os.mkfifo(path)), ("socket", bind), ("folder", path.mkdir),
            ("sparse", sparse), ("zero", lambda: path.symlink_to("/dev/zero")),
            ("random", lambda: path.symlink_to("/dev/urandom")),
            ("stranger's", lambda: path.symlink_to(victim)),
            ("itself", lambda: path.symlink_to(path)), ("gone", lambda: None))


def fake_gnuplot(folder):
    """A gnuplot that draws nothing, which takes no time."""
    (folder / "gnuplot").write_text("""#!/bin/sh
for word; do case $word in "OUT = "*)
file=${word#OUT = \\'}; file=${file%\\'}
echo '<svg xmlns="http://www.w3.org/2000/svg"></svg>' >"$file" ;;
esac; done
""")
    (folder / "gnuplot").chmod(0o755)
    os.environ["PATH"] = f"{folder}:{PATH}"
