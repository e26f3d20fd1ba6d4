"""What the answer of a study must say besides the order of the cells: what was not given,
not run, not reached, and what makes numbers doubtful.
"""

from study_oracle_runs import bounds
from study_oracle_say import Said, f, hover, names, short
from study_oracle_tables import steps_of


def all_or(study, cells):
    return "all cells" if len(cells) == len(study.filled) else names(cells)


def not_given(study):
    found = {}
    for c in study.filled:
        for _, run in sorted(c.runs.items()):
            for lack in run.lacks:
                found.setdefault(lack, dict())[short(study, c)] = True
    for (key, asked, given), cells in found.items():
        who = all_or(study, list(cells))
        yield [f"Warning: cores of their own could not be had: the workers of {who} share "
               "cores." if key == "cores" else
               f"Warning: {key}={asked} was asked for and could not be had: {who} ran "
               + ("on unshaped links." if given == "unshaped" else f"with {key}={given}.")]


def unfinished(study):
    for c in study.cells:
        for k, run in sorted(c.all.items()):
            if not run.finished:
                yield [f"Warning: {short(study, c)}, repeat {k} reached only "
                       f"step {run.last_step()} of {run.set['steps']}, "
                       "so it is left out."]
    lost = [short(study, c) for c in study.cells if not c.all]
    if lost:
        yield [f"Not run: {names(lost)}."]
    had = {run.folder for c in study.cells for run in c.all.values()}
    others = sorted(str(p.parent.relative_to(study.folder))
                    for p in study.folder.glob("cells/*/r*/run.json")
                    if p.parent not in had)
    if others:
        yield Said(["Left out, as the experiment no longer has their cell or repeat: " + others[0]
               + (f" and {len(others) - 1} more." if others[1:] else ".")],
                   [[folder] for folder in others])


def unreached(study):
    lost = [c for c in study.filled if not c.first.pace and
            study.median(c, "seconds_to_target") is None]
    given = study.about.get("target_loss", "auto")
    if given != "auto" and not study.one_task():
        yield [f"No cell has the seconds to loss {float(given):.2f}, since cells have "
               "different models or data."]
    if study.target is not None and lost:
        yield Said([f"Loss {study.target:.2f} was not reached by "
                    f"{names([short(study, c) for c in lost])}."],
                   hover(study, lost, ["smooth_loss_nats"]))


def failed(study):
    def said(runs, text, end):
        cells = [c for c in study.filled if any(r in runs for r in c.runs.values())]
        if cells:
            yield Said([f"Warning: {text}: "
                        f"{all_or(study, [short(study, c) for c in cells])}. {end}."],
                       hover(study, cells, ["trained_share", "restarts", "steps_lost",
                                            "seconds_lost"]))
    yield from said([r for r in study.runs if r.gaps],
                    "a worker was dead in some steps, which trained on smaller batches",
                    "Do not compare their times and losses with those of others")
    yield from said([r for r in study.runs if r.value["restarts"] > 0],
                    "started again after a failure",
                    "Their times leave out the steps that were done again, and the time of "
                    "each start")


def expected(run):
    """The share of a worker's computing time in which it cannot have a core."""
    used = run.server_cores
    wanted = threads(run) if used is None else run.world * run.json["threads"] + used
    return max(0, 1 - cores(run) / wanted)


def threads(run):
    servers = run.way["servers"]
    return run.world * run.json["threads"] + \
        (servers * run.set["server_threads"] if servers else 0)


def cores(run):
    return run.hosts * run.json["machine"]["cores"]


def surplus(run):
    return run.value["processor_taken_share"] - expected(run)


def disturbed_of(runs):
    return [r for r in runs if r.value["processor_taken_share"] is not None
            and surplus(r) > .1 and (r.value["involuntary_switches_per_s"] or 0) > 20]


def busy(study):
    judged = [r for r in study.runs
              if r.value["processor_taken_share"] is not None]
    disturbed = disturbed_of(judged)
    if disturbed:
        worst = max(disturbed, key=surplus)
        yield Said([f"Warning: the machine was busy. In {len(disturbed)} of "
               f"{len(judged)} runs other programs took the processors for more "
               "than 10% of the computing time. The worst is "
               f"{short(study, worst.cell)}, repeat {worst.repeat}, "
               "with ", f(100 * surplus(worst), 0),
               "%. The times of such runs are too long, and what follows from them may "
               "be wrong."], [
                   [f"{short(study, r.cell)}, repeat {r.repeat}: ",
                    f(100 * r.value["processor_taken_share"], 0), "% taken, ",
                    f(100 * expected(r), 0), "% by the job itself"] for r in disturbed])


def crowded(study):
    cells = [c for c in study.filled if c.first.crowded]
    if cells:
        yield Said(["Warning: more threads than cores, so workers share cores and all "
                    "times are longer than on cores of their own: "
                    f"{all_or(study, [short(study, c) for c in cells])}."], [
            [f"{short(study, c)}: {threads(c.first)} threads, {cores(c.first)} cores"]
            for c in cells])


def dropped(study):
    least = {c: min(r.value["trained_share"] for r in c.runs.values())
             for c in study.filled}
    some = [c for c in study.filled if least[c] < .995]
    if some:
        said = ["Not all that was read was trained on: "]
        for i, c in enumerate(some):
            said += ["" if not i else " and " if c is some[-1] else ", ",
                     f"{short(study, c)} has ", f(100 * least[c], 0), "% of the tokens"]
        yield Said(said + [". The others are no part of tokens/s."],
                   hover(study, some, ["trained_share", "tokens"]))


def few(study):
    cells = [c for c in study.filled
             if min(r.value["timed_steps"] for r in c.runs.values()) < 10]
    if cells:
        yield Said(["Warning: few steps. The times of "
                    f"{all_or(study, [short(study, c) for c in cells])} stand on "
                    f"{steps_of(cells)} steps, of which the first is often the slowest; "
                    "try: steps=20."], hover(study, cells, ["timed_steps"]))


def merged(study):
    found = []
    for c in study.filled:
        others = [t.name for t in c.twins if t.name != c.name]
        if c.twins:
            found.append(f"{short(study, c)} ({1 + len(c.twins)} cells" + (
                f", also {names(others)})" if others else ")"))
    if found:
        yield Said(["Cells that had the same settings are one here, and their runs are its "
                    f"repeats: {names(found)}."], [
            [f"{c.name}, repeat {k}: {c.runs[k].folder.relative_to(study.folder)}"]
            for c in study.filled if c.twins for k in sorted(c.runs)])


def alone(study, found):
    """No sentence ranks what has nothing like it."""
    some = [c for c in found if len(c.cells) == 1]
    if some and len(study.filled) > 1:
        cells = [short(study, c.cells[0]) for c in some]
        yield Said(["Not ranked, since no other cell has the same links, workers, global "
                    f"batch and model: {all_or(study, cells)}."],
                   [[f"{c.names(c.cells)}: {names(c.where) if c.where else ''}"]
                    for c in some])


def remarks(study):
    for c in study.filled:
        if c.first.mistakes:
            yield [f"Warning: {short(study, c)} is wrong on purpose: "
                   f"{' '.join(c.first.mistakes)}."]
    for pace in dict.fromkeys(c.first.pace for c in study.filled if c.first.pace):
        asleep = [short(study, c) for c in study.filled if c.first.pace == pace]
        yield [f"Slept instead of computing (pace={pace} ms), so that bytes and waits are "
               f"real, but nothing was learned: {all_or(study, asleep)}."]
    for word, of in (("builds", lambda r: r.json["revision"].split("+")[-1]),
                     ("processors", lambda r: r.json["machine"]["processor"])):
        kinds = sorted({of(r) for r in study.runs})
        if len(kinds) > 1:
            yield Said([f"Warning: the cells ran with {len(kinds)} different {word}: "
                        f"{names(kinds)}."],
                       [[f"{short(study, c)}: {of(c.first)}"] for c in study.filled])


def outliers(study):
    for c in study.filled:
        middle = study.median(c, "tokens_per_s")
        off = {k: abs(r.value["tokens_per_s"] - middle)
               for k, r in c.runs.items()}
        usual = bounds(off.values())[0]
        for k, run in sorted(c.runs.items()):
            if len(off) > 2 and off[k] > .1 * middle and off[k] > 3 * usual:
                yield Said(["Outlier (kept in all ranges): "
                            f"{short(study, c)}, repeat {k}, has ",
                            f(run.value["tokens_per_s"], 0),
                            " tokens/s; the cell's median is ", f(middle, 0), "."], [
                    [f"repeat {n}: ", f(r.value["tokens_per_s"], 0)]
                    for n, r in sorted(c.runs.items())])


ALL = (unreached, crowded, dropped, few, remarks, outliers)
