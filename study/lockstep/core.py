"""Asks the program `lockstep` what only it knows: models, memory, laws, timetables,
and the tables of keys and backends (lockstep/tell.c).
"""

import json
import subprocess

from .files import Error, visible
from .places import program

TRAIN = "lockstep train --help"


class Core:
    """A process that answers questions. It ends with this object. `everything`: the
    command that lists all keys, for errors."""

    everything = TRAIN

    def __init__(self):
        self._child = subprocess.Popen([program(), "tell"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True,
                                       encoding="utf-8", errors="surrogateescape")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._child.stdin.close()
        self._child.stdout.close()
        self._child.wait()

    def ask(self, *question):
        """The answer to a question, a verb and its words. An Error has the program's
        reason."""
        try:
            self._child.stdin.write(json.dumps(question, ensure_ascii=False) + "\n")
            self._child.stdin.flush()
            answer = json.loads(self._child.stdout.readline())
        except (OSError, ValueError):
            raise Error(f"{visible(program())} tell: no answer") from None
        if "error" in answer:
            raise Error(answer["error"].replace(f"all: {TRAIN}", f"all: {self.everything}"))
        return answer

    def table(self):
        """The program's tables: keys, backends and presets."""
        return self.ask("table")


def key(group, name, value, kind, about, **more):
    """A row of a table of keys, as struct key of config/keys.h."""
    return {"group": group, "name": name, "value": value, "type": kind, "help": about,
            **more}


def own_words(core, rows, everything, words):
    """({name: value} of the keys of `rows`, the other words, which are keys of train).
    `everything` is the command that lists both."""
    core.everything = everything
    names = tuple(f"{row['name']}=" for row in rows)
    own = [word for word in words if word.startswith(names)]
    return (core.ask("words", rows, everything, *own),
            [word for word in words if word not in own])


def key_help(core, rows):
    """What --help says about the rows."""
    return core.ask("help", rows)["text"]
