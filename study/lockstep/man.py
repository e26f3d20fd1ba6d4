"""The command man: manual pages in roff, from the --help of the commands and the table
of keys, so that they say the same.
"""

import os
import shutil
import subprocess
import sys

from .core import Core
from .files import Error, visible
from .places import needed

HELP = """\
lockstep man lockstep|trainer|ps_server

Shows a manual page. Into a pipe or a file it is written as roff.

  lockstep man trainer
  lockstep man trainer | man -l -
"""

ENVIRONMENT = (
    ("LOCKSTEP_SECRET",
     "The secret of the job. Its sockets accept only processes that know it. The launcher "
     "makes one. Programs that are started by hand on one host use their user's secret, in "
     "~/.local/state/lockstep/secret. Programs of several hosts or users must all get the "
     "same one."),
    ("LOCKSTEP_SECRET_FILE",
     "A file with the secret. Only its owner may be able to read it."),
    ("LOCKSTEP_RSH",
     "The command that reaches the hosts of hosts=FILE, instead of ssh."),
    ("LOCKSTEP_PLOTS", "A folder with other scripts for the figures."),
)


def explain():
    """What --help says."""
    return HELP


def _line(text):
    """A line of text. \\& keeps roff from taking a dot or a quote as a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def _begin(core, name, what, synopsis):
    return [f'.TH {name.upper()} 1 "" "lockstep {core.table()["version"]}" Lockstep',
            ".SH NAME", f"{name} \\- {what}", ".SH SYNOPSIS", _line(synopsis),
            ".SH DESCRIPTION"]


def _end(others):
    lines = [".SH ENVIRONMENT"]
    for name, about in ENVIRONMENT:
        lines += [".TP", f".B {name}", _line(about)]
    return [*lines, ".SH EXIT STATUS",
            "0: success. 1: an error, printed in one line. 2: no command. 128 + N: stopped "
            "by signal N.", ".SH SEE ALSO", _line(others)]


def _verbatim(text):
    return [".nf", *map(_line, text.splitlines()), ".fi"]


def _page_lockstep(core):
    from .main import find
    table = core.table()
    lines = _begin(core, "lockstep", "train GPT-2 on one worker or many, and compare ways "
                   "to synchronise them", "lockstep COMMAND [key=value] ...")
    lines.append("Each worker computes gradients. sync=NAME chooses the backend, which is "
                 "how several workers agree on the next parameters:")
    for backend in table["backends"]:
        lines += [".TP", f".B sync={backend['name']}", _line(backend["help"])]
    lines += [".PP", "trainer(1) lists all settings.", ".SH COMMANDS"]
    for name, about in table["commands"].items():
        text = core.ask("explain", name).get("text") or find(name)[1]()
        lines += [f".SS {_line(name)}", _line(about), ".PP", *_verbatim(text)]
    return lines + _end("trainer(1), ps_server(1)")


def _page_trainer(core):
    lines, group = _begin(core, "trainer", "one worker of a job that trains GPT-2",
                          "trainer [FILE.ini] key=value ..."), ""
    lines += ["lockstep train starts all workers of a job, and its servers. You can also "
              "start them with mpirun, srun or torchrun, or by hand. Settings are key=value "
              "words, or lines of an INI file. The last one of a key wins. The value in "
              "brackets is the default.", ".SH SETTINGS"]
    for row in core.table()["keys"]:
        lines += [f".SS {row['group']}"] * (row["group"] != group)
        group = row["group"]
        values = f"{row['name']}={row['allowed']} [{row['usual']}]"
        lines += [".TP", f".B {_line(values)}", _line(row["about"])]
    return lines + _end("lockstep(1), ps_server(1)")


def _page_server(core):
    said = subprocess.run([needed("ps_server"), "--help"], capture_output=True, text=True,
                          check=True, timeout=60).stdout
    return _begin(core, "ps_server", "a parameter server of one job",
                  "ps_server [key=value] ...") + _verbatim(said) + \
        _end("lockstep(1), trainer(1)")


PAGES = {"lockstep": _page_lockstep, "trainer": _page_trainer, "ps_server": _page_server}


def man(words):
    """lockstep man. On a terminal man(1) formats the page."""
    if len(words) != 1 or words[0] not in PAGES:
        raise Error(f"man {visible(words[-1])[:60]}: no such page; try: {', '.join(PAGES)}")
    with Core() as core:
        page = "".join(f"{line}\n" for line in PAGES[words[0]](core))
    if os.isatty(sys.stdout.fileno()) and shutil.which("man"):
        subprocess.run(["man", "-l", "-"], input=page, text=True, check=False)
    else:
        print(page, end="")
    return 0
