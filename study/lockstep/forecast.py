"""What the commands predict, fit and simulate share: lists of workers and ways, hosts,
GPUs that nobody has measured, and tables of memory.
"""

import os
import re
import textwrap

from .files import Error, visible, whole

MOST, MOST_WORKERS = 32, 4096
SLOTS = 8  # workers of a host, if nobody says
BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}  # of a number on the wire

# What hosts do in a step if workers are GPUs.
UPDATES = "processors of hosts update; gradients are copied to them, parameters back"
SQUEEZES = "gradients are copied to host memory, and compressed and added there"
COPIES = "what travels is copied to host memory and back"

# ---- words


def _items(key, text):
    items = text.split(",")
    if len(items) > MOST:
        raise Error(f"{key}={visible(text)}: more than {MOST}")
    return items


def read_workers(text):
    """The numbers of workers=4,16."""
    numbers = [whole(item, 2, MOST_WORKERS) for item in _items("workers", text)]
    for number, item in zip(numbers, text.split(",")):
        if number is None:
            raise Error(f"workers={visible(item)}: must be whole numbers, 2 .. "
                        f"{MOST_WORKERS}; one worker exchanges nothing")
    return numbers


def read_backends(core, backends, text):
    """The rows of sync=ring,dps. The first row (local) trains one worker, so it is not
    accepted."""
    first, *others = backends
    rows = []
    for item in _items("sync", text):
        if item == first["name"]:
            raise Error(f"sync={item}: has one worker and no communication; try: a backend "
                        f"of several workers, as sync={others[0]['name']}")
        core.ask("choice", "sync", item, *(b["name"] for b in others))
        row = next(b for b in others if b["name"] == item)
        if not row["has_law"]:
            raise Error(f"sync={item}: its bytes depend on a student's file; try: "
                        "labs/grade, which counts them")
        rows.append(row)
    return rows


def names_of(backends, which):
    """The names of the backends of which `which` is true, with commas."""
    return ",".join(b["name"] for b in backends if b[which])


def shards_more(settings):
    """Whether gradients, and parameters, may be in shards, too. There, compressed gradients
    have no residuals."""
    return settings["squeeze"] == "none" or settings["feedback"] == "0"


def compresses(backend, settings, asked):
    """Whether a backend can compress gradients by squeeze= and the keys asked for."""
    adds = backend["servers"] or backend["shards"]
    keys = {"squeeze"} | {"freeze", "scope", "squeeze_rank"} & set(asked)
    return keys <= set(backend["keys"]) and \
        not (adds and settings["squeeze"] in ("power", "demo")) and \
        not (backend["servers"] and settings["update"] == "server") and \
        not (backend["shards"] and settings["shard"] != "1" and not shards_more(settings))


def only_compressing(who, ways, run, named, gpu=False):
    """With squeeze=, the backends that compress gradients. Refuses others if the user
    `named` them."""
    settings, asked = run["settings"], run["asked"]
    if settings["squeeze"] == "none":
        return ways
    if gpu and settings["freeze"] != "0":
        raise Error(f"{who}: freeze={settings['freeze']}: workers read the moments in the "
                    "memory of the CPU; try: without device=")
    able = [way for way in ways if compresses(way, settings, asked)]
    other = next((way for way in ways if way not in able), None)
    if named and other:
        if other["shards"] and settings["squeeze"] not in ("power", "demo") and \
                settings["shard"] != "1":
            raise Error(f"{who}: sync={other['name']} shard={settings['shard']} compresses "
                        "gradients only without residuals; try: feedback=0, or shard=1")
        late = f" freeze={settings['freeze']}" * (settings["freeze"] != "0")
        raise Error(f"{who}: sync={other['name']} cannot compress gradients by "
                    f"squeeze={settings['squeeze']}{late}; try: sync=ring, or no "
                    f"{'freeze' if late else 'squeeze'}=")
    return able


def only_offloading(ways, settings, gpu):
    """With offload=disk, the backends whose state can be in a file: with GPUs only what
    hosts update."""
    if settings["offload"] == "none":
        return ways
    able = [way for way in ways
            if "offload" in way["keys"] and (way["shards"] or not gpu)]
    if not able:
        raise Error(f"predict: offload=disk{' with a GPU' * gpu} is not for "
                    f"sync={','.join(way['name'] for way in ways)}; try: sync=zero")
    return able


def on_host(way, settings, step):
    """What hosts do in a step of a backend if workers are GPUs; "": nothing, since it
    exchanges by NCCL (which ctas= limits), or not at all, and updates on the GPUs."""
    if way["shards"] or step["held"]:
        return UPDATES
    if settings["squeeze"] != "none":
        return SQUEEZES
    return "" if "ctas" in way["keys"] or way["traffic"] == "none" else COPIES


def read_size(key, text):
    """Bytes of a text such as 2gb, 900MB, 24g or 1.5gib."""
    powers = {"k": 1, "m": 2, "g": 3, "t": 4}
    match = re.fullmatch(r"([+-]?[\d.]+(?:e[+-]?\d+)?)([a-z]*)", text, re.I)
    unit = match[2].lower() if match else ""
    number = None
    if match:
        try:
            number = float(match[1])
        except ValueError:
            pass
    if number is not None and 0 < number < 1e9 and \
            re.fullmatch("[kmgt](i?b)?", unit):
        return number * (1024 if "i" in unit else 1000) ** powers[unit[0]]
    example = f"{text}gb" if number and number > 0 and not unit else "2gb, 900mb or 1.5gib"
    raise Error(f"{key}={visible(text)}: must be a number with a unit; try: "
                f"{key}={visible(example)}")


def place(hosts, slots, workers, who):
    """(hosts, workers of each), of which 0 is not known. `workers`: all of them, or
    0."""
    hosts = hosts or 1
    if not workers:
        return hosts, slots or SLOTS
    if not slots and workers % hosts:
        raise Error(f"{who}: {workers} workers cannot be divided evenly among "
                    f"hosts={hosts}; try: hosts=1")
    if slots and hosts * slots != workers:
        raise Error(f"{who}: hosts={hosts} with slots={slots} are {hosts * slots} workers, "
                    f"not {workers}; try: without slots=")
    return hosts, slots or workers // hosts


def threads(run, workers):
    """The threads of a worker on a host of so many: threads=, or its share of this
    machine's cores."""
    return int(run["settings"]["threads"]) or \
        max(1, os.sysconf("SC_NPROCESSORS_ONLN") // workers)


def mesh_of(text):
    """{"dp": 2, "pp": 2} of mesh=dp2,pp2."""
    return {word[:2]: int(word[2:]) for word in filter(None, text.split(","))}


def divided(run, sizes):
    """(values of tp_sequence=, values of attention_over=) that a mesh of these sizes may
    have."""
    settings, asked = run["settings"], run["asked"]
    slices, pieces, group = sizes.get("tp", 1), sizes.get("cp", 1), sizes.get("up", 1)
    rows, overs = [0], ["gather"]
    if slices > 1:
        rows = [int(settings["tp_sequence"])] if "tp_sequence" in asked else [0, 1, 2]
    if pieces > 1:
        overs = [settings["attention_over"]] if "attention_over" in asked else \
            ["gather", "ring", "heads"]
    if group > 1 or run["heads"] // slices < pieces:
        overs = [over for over in overs if over != "heads"]
    return rows, overs


def marks(sequence, over):
    """What a table says of these values: "+seq+ring"."""
    return ("", "+seq", "+seq2")[sequence] + f"+{over}" * (over != "gather")


def refuse_pieces(mesh, who):
    """Refuses divided sequences, which a command cannot do."""
    if mesh.get("cp", 1) > 1:
        raise Error(f"{who}: divided sequences (cp) are for training, and for predictions of "
                    "CPUs; try: a mesh without cp")


# ---- tables


def say(text):
    """Prints a text in lines of 90 characters."""
    print(textwrap.fill(text, 90))


def say_gpu_memory(names):
    """What a table of memory of these backends says if it is asked for a GPU."""
    held = " and ".join(name for name in ("zero", "dataparallel") if name in names)
    say("process: code and threads of a CPU's worker. A GPU's CUDA context, hundreds of MB "
        "of its memory, is not counted." +
        f" The shards or state of {held} count as a worker's; with a GPU they are in host "
        "memory." * bool(held))


def say_on_host(works):
    """What rows with a star leave out, from pairs of a name and what hosts do for it."""
    names = {}
    for name, work in works:
        if work and name not in names.setdefault(work, []):
            names[work].append(name)
    if names:
        print()
        say("*: with GPUs hosts do a part of the step. No figure is known for it, so it is "
            "not counted, and these ways are not compared with others:")
    for work, who in names.items():
        say(f"{', '.join(who)}: {work}")


def memory_head(first):
    """The head of a table of memory by part, without a newline."""
    return (f"{first:<20} {'parameters':>10} {'gradients':>10} {'optimiser':>10} "
            f"{'buffers':>9} {'activations':>11} {'process':>8} {'total MB':>10}")


def memory_row(name, parts):
    """A row of it, in MB, without a newline."""
    widths = 10, 10, 10, 9, 11, 8, 10
    texts = (f"{v * 1e-6:.1f}" if v else "-" for v in [*parts, sum(parts)])
    return f"{name:<20}" + "".join(f" {t:>{w}}" for t, w in zip(texts, widths))


def memory_rows(name, worker, server, more=""):
    """The rows of a worker, with `more` at its end, and of its server, if it has one."""
    yield memory_row(name, worker) + more
    if sum(server):
        yield memory_row("  its server", server)
