"""Whether two runs are the same: in their settings, in what they trained, or in all but
chance.
"""

import json

from .files import number, visible


def same_value(a, b):
    """Whether two settings are the same, as numbers if both are."""
    x, y = number(a), number(b)
    if x is not None and y is not None:
        return x == y
    return "".join(str(a).split()) == "".join(str(b).split())


def difference(a, b):
    """The first setting in which two dicts differ, as each has it: "lr=0.5", or
    "no lr="; None if they are equal."""
    for key in [*a, *(k for k in b if k not in a)]:
        if not same_value(a.get(key, ""), b.get(key, "")):
            return [f"{key}={value}" if value else f"no {key}=" for value in (
                visible(a.get(key, "")), visible(b.get(key, "")))]
    return None


def _today(found):
    """Settings of an earlier version by today's names."""
    symbols, rule = found.pop("symbols", "bytes"), found.pop("outer_rule", "")
    if found.get("vocab") == "":
        found["vocab"] = symbols
    if rule == "average":
        found |= {"outer_lr": "1", "outer_momentum": "0"}
    if found.pop("tf32", "0") == "1" and found.get("precision") == "fp32":
        found["precision"] = "tf32"
    wrong = {k: found.pop(k) for k in list(found) if k.startswith("mistake_")}
    if wrong:
        found["mistake"] = " ".join(
            key.partition("_")[2] + f":{value}" * (key == "mistake_own_steps")
            for key, value in wrong.items() if value not in ("", "0")) or "none"
    return found


def _object(run, key):
    value = run.get(key)
    return _today({k: visible(v) for k, v in value.items()}) if isinstance(value, dict) \
        else {}


def differences(a, b, key="training"):
    """["lr (0.001, 0.002)", ..]: what makes two runs different trainings. With
    key="task" only the model and the data."""
    mine, its = _object(a, key), _object(b, key)
    found = []
    hashes = a.text("data.hash_xxh3"), b.text("data.hash_xxh3")
    if hashes[0] != hashes[1]:
        found.append(f"the data (hash {hashes[0]}, {hashes[1]})")
    if not mine or not its:
        return found + ["settings that an older version did not record"]
    # only compressed gradients depend on some other settings
    follows = ("squeeze" in mine) != ("squeeze" in its)
    for name in [*mine, *(k for k in its if k not in mine)]:
        x, y = mine.get(name, "none"), its.get(name, "none")
        if follows and name != "squeeze" and (name not in mine or name not in its):
            continue
        if not same_value(x, y):
            found.append(f"{'the ' * (name == 'global batch')}{name} ({x}, {y})")
    return found


def task_of(run):
    """The settings of its model, and its data."""
    return {**_object(run, "task"), "data": run.text("data.hash_xxh3")}


def around(run):
    """What repeats of a cell must have in common besides their settings."""
    found = {"net": run.net, **run.read, **run.environment, "host": run.get("machine.host", ""),
             "processor": run.get("machine.processor", ""),
             "cores": run.get("machine.cores", "")}
    if run.net:  # an emulated host has a name of its own
        del found["host"]
    return found


# Settings of one start, and those that numbers of the run stand for.
STARTS = ("out", "resume", "rank", "world", "rendezvous", "iface", "net", "servers",
          "workers", "global_batch")


def kind_of(run):
    """A text that is the same for two runs if nothing but chance is between them."""
    settings = {k: v for k, v in run.settings.items() if k not in STARTS}
    return json.dumps([run.backend, run.text("transport"), run.world, run.servers,
                       run.global_batch, around(run), settings, bool(run.cell.peer)],
                      sort_keys=True)
