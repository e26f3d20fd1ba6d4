"""Compares figures of bars and columns with the runs that they show (draw.py)."""

import made
from drawn import draw, same
from made import KINDS, MIB, PARTS, WORKERS, Made, median, rgb

BLACK, SERVER = (0, 0, 0), (201, 201, 201)


# ---- bars

def bars_are(m, figure, expected, labels, panel=0, name=""):
    """`expected`: (colour, from, to, row, half of its height)."""
    p = figure.panels[panel]
    assert p.labels() == labels, (name, p.labels(), labels)
    for (at, _), i in zip(sorted(p.y_tics), range(len(labels))):
        assert abs(at - p.row(i, len(labels))) < .7, (name, i)
    high = (p.frame[3] - p.frame[1]) / len(labels)
    same(p.bars, [(c, p.pixel("x", a), p.row(i, len(labels)) - h * high,
                   p.pixel("x", b), p.row(i, len(labels)) + h * high)
                  for c, a, b, i, h in expected if b > a], name)


def ranges_are(m, figure, measure, panel=0, shift=0.0, name=""):
    """The marks are on the row of their cell, from the least to the most."""
    p, expected = figure.panels[panel], []
    for i in range(m.n):
        values = measure(i)
        if values and max(values) - min(values) > 1e-9:
            y = p.row(i + shift, m.n)
            expected.append(([(p.pixel("x", min(values)), y), (p.pixel("x", max(values)), y)],))
    found = [(points,) for c, width, points in p.lines if c == BLACK and width == 1.5
             and len(points) == 2 and points[0][1] == points[1][1]]
    same(found, expected, f"{name}: ranges")


def laws_are(m, figure, expected, name, half=0.2):
    """Lines across bars: (place, row)."""
    p = figure.panels[0]
    found = [(points,) for c, width, points in p.lines if c == BLACK and width == 3]
    same([(sorted(f[0]),) for f in found], [(sorted(
        [(p.pixel("x", at), p.row(i - half, m.n)), (p.pixel("x", at), p.row(i + half, m.n))]),)
        for at, i in expected], f"{name}: law")


def throughput(m):
    figure, p = draw(m.study, "throughput"), None
    bars_are(m, figure, [(m.colour(i), 0, median(m.rates(i)), i, .36) for i in range(m.n)],
             [m.label(i, f"{median(m.rates(i)):.0f}") for i in range(m.n)],
             name="throughput")
    ranges_are(m, figure, m.rates, name="throughput")
    p = figure.panels[0]
    same([q for q in p.points if q[1] == "gpPt5"],
         [(BLACK, "gpPt5", p.pixel("x", r), p.row(i, m.n)) for i in range(m.n)
          for r in m.rates(i)], "throughput: repeats")


def speedup(m, target):
    ratio = [[a / b for a, b in zip(m.rates(i), m.rates(0))] for i in range(m.n)]
    middle = [median(m.rates(i)) / median(m.rates(0)) for i in range(m.n)]
    needs = [next((s for s in range(10, 21) if m.smooth(i, s) <= target), None)
             for i in range(m.n)]
    seconds = [[s * t for t in m.times(i)] if s else [] for i, s in enumerate(needs)]
    figure = draw(m.study, "speedup")
    bars_are(m, figure, [(m.colour(i), 0, middle[i], i, .36) for i in range(m.n)],
             [m.label(i, f"{middle[i]:.2f}") for i in range(m.n)], name="speedup")
    ranges_are(m, figure, lambda i: ratio[i], name="speedup")
    bars_are(m, figure, [(m.colour(i), 0, median(s), i, .36)
                         for i, s in enumerate(seconds) if s],
             [f"{median(s):.3g}" if s else "-" for s in seconds], 1, "seconds")
    ranges_are(m, figure, lambda i: seconds[i], 1, name="seconds")


def memory(m):
    peaks = [w["peak"] / MIB for _, w in m.cells]
    servers = [(SERVER, 0, 10 + 12 + w["servers"] - 1, i + .17, .16)
               for i, (_, w) in enumerate(m.cells) if w["servers"]]
    figure = draw(m.study, "memory")
    bars_are(m, figure, [(m.colour(i), 0, peak, i - .17, .16) for i, peak in
                         enumerate(peaks)] + servers,
             [m.label(i, f"{peak:.0f}") for i, peak in enumerate(peaks)], name="memory")
    assert [k[0] for k in figure.keys] == ["worker (colour: backend)"] + \
        ["server"] * bool(servers)
    if m.repeat > 1:  # one repeat had a higher peak
        highest = m.study.of(m.study.cells[1])[1]
        highest.summary["peak_memory_bytes"] += 30 * MIB
        again = draw(m.study, "memory")
        ranges_are(m, again, lambda i: [peaks[1], peaks[1] + 30] if i == 1 else None,
                   shift=-.17, name="memory")
        highest.summary["peak_memory_bytes"] -= 30 * MIB


def bytes_(m):
    figure = draw(m.study, "bytes")
    servers = [(SERVER, 0, w["sent"] / MIB * w["world"] / 2, i + .17, .16)
               for i, (_, w) in enumerate(m.cells) if w["servers"]]
    bars_are(m, figure, [(m.colour(i), 0, w["sent"] / MIB, i - .17, .16)
                         for i, (_, w) in enumerate(m.cells)] + servers,
             [m.cells[i][0] for i in range(m.n)], name="bytes")
    laws_are(m, figure, [(w["law"] / MIB, i - .17) for i, (_, w) in enumerate(m.cells)],
             "bytes")
    named = [t for *_, t in figure.texts if "server" in t] + [k for k, *_ in figure.keys]
    assert any("server, received" in t for t in named) == bool(servers), named
    assert bool(servers) or not any("server" in t for t in named), named


def stacked(parts, row, half):
    """Bars of (colour, length), one behind the other."""
    found, end = [], 0.0
    for colour, length in parts:
        found.append((rgb(colour), end, end + length, row, half))
        end += length
    return found


def breakdown(m):
    colours = dict(data="#8c8c8c", forward="#c2dcf0", backward="#6ba6d6", update="#235a97",
                   exposed="#c2410c", wait="#f5b06f", other="#e4e4e4")
    figure = draw(m.study, "breakdown")
    bars_are(m, figure, [b for i in range(m.n) for b in stacked(
        [(colours[k], 1e3 * median(m.times(i)) * share) for k, share in KINDS.items()],
        i, .36)], [m.label(i) for i in range(m.n)], name="breakdown")
    assert [(k[0], k[1]) for k in figure.keys] == [
        ("exposed transfer" if k == "exposed" else k, rgb(c)) for k, c in colours.items()]


def memory_parts(m):
    colours = ("#235a97", "#6ba6d6", "#f2b04c", "#c2410c", "#2ba58d", "#c8c8c8", "#ececec")
    figure = draw(m.study, "memory_parts")
    bars_are(m, figure, [b for i in range(m.n) for b in stacked(
        [(c, v * 1e-6) for c, v in zip(colours, PARTS.values())], i, .3)],
        [name for name, _ in m.cells], name="memory_parts")
    laws_are(m, figure, [(w["peak"] * 1e-6, i) for i, (_, w) in enumerate(m.cells)],
             "memory_parts", .42)


def verbs(folder):
    way = {"step_us": 10000, "verbs": {"reduce_scatter": 2e6, "all_gather": 3e6, "recv": 9e6},
           "law_verbs": {"reduce_scatter": 2.5e6, "all_gather": 2.25e6}}
    m = Made(folder, [("a", way), ("b", {"step_us": 10000, "sent": 7e6, "law": 5e6})], 1)
    bars_are(m, draw(m.study, "verbs"), [
        *stacked([("#235a97", 2), ("#6ba6d6", 3)], -.17, .16),
        *stacked([("#9bb3cf", 2.5), ("#c4dcee", 2.25)], .17, .16),
        *stacked([("#f2b04c", 7)], 1 - .17, .16), *stacked([("#f9dba6", 5)], 1.17, .16)],
        ["a", "b"], name="verbs")


def only_used_parts(folder):
    """The key of memory_parts has no part that no bar has."""
    from lockstep.study import Study
    Made(folder, [("a", {"step_us": 10000}), ("b", {"step_us": 20000})], 1)
    for path in folder.glob("cells/*/r1/summary.json"):
        path.write_text(path.read_text().replace('"buffers_bytes": 5000000.0',
                                                 '"buffers_bytes": 0'))
    keys = [k[0] for k in draw(Study(str(folder)), "memory_parts").keys]
    assert "activations" in keys and "buffers" not in keys, keys


def server_load(m):
    rows = [(i, s) for i, (_, w) in enumerate(m.cells) for s in range(w["servers"])]
    bars_are(m, draw(m.study, "server_load"), [
        (m.colour(i), 0, 20 + 10 * s, row, .36) for row, (i, s) in enumerate(rows)],
        [f"{m.cells[i][0]} s{s}  {20 + 10 * s}%" for i, s in rows], name="server_load")


# ---- columns

def columns_are(figure, expected, name):
    """`expected`: (colour, middle, half of its width, value)."""
    p = figure.panels[0]
    one = p.pixel("x", 2) - p.pixel("x", 1) if p.x_tics[0][1].strip().isdecimal() else \
        p.x_tics[1][0] - p.x_tics[0][0] if len(p.x_tics) > 1 else \
        (p.frame[2] - p.frame[0]) / 1.2

    def at(x):
        return p.pixel("x", x) if p.x_tics[0][1].strip().isdecimal() else \
            p.x_tics[0][0] + (x - 1) * one
    same(p.bars, [(c, at(x) - h * one, p.pixel("y", v), at(x) + h * one, p.frame[3])
                  for c, x, h, v in expected], name, 1.0)


def util_bars(m):
    most = max(m.world(i) for i in range(m.n))
    figure = draw(m.study, "util_bars")
    busy = 100 * sum(KINDS[k] for k in ("forward", "backward", "update"))
    columns_are(figure, [(rgb(WORKERS[w]), i + 1 - .4 + (w + .5) * .8 / most, .46 * .8 / most,
                          busy) for i in range(m.n) for w in range(m.world(i))], "util_bars")
    p = figure.panels[0]
    assert [t for _, t in p.x_tics] == [m.label(i) for i in range(m.n)]
    assert {t for _, _, t in p.texts} == {"73"} or m.n * most > 36
    ends = sorted(x for x, _, _ in p.texts)
    assert all(b - a > 26 for a, b in zip(ends, ends[1:])), f"texts overlap: {ends}"
    assert [k[0] for k in figure.keys] == [f"worker {w}" for w in range(most)]


def staleness(m):
    figure, wide = draw(m.study, "staleness"), .85 / m.n
    shades = ("#1a1a1a", "#9a3412", "#2b6cb0", "#2ba58d", "#f2b04c", "#b9a3d6")
    columns_are(figure, [
        (rgb(shades[i % 6]), lag - .425 + (i + .5) * wide, .475 * wide, share)
        for i in range(m.n) for lag, share in ((0, 25), (1, 50), (2 + i % 3, 25))],
        "staleness")
    assert [k[0] for k in figure.keys] == [name for name, _ in m.cells]


def all_of(m, target):
    """All figures of bars of a study of named cells."""
    throughput(m)
    speedup(m, target)
    memory(m)
    bytes_(m)
    breakdown(m)
    memory_parts(m)
    if any(w["servers"] for _, w in m.cells):
        server_load(m)
    util_bars(m)
    staleness(m)


def of_all_repeats(folder):
    """staleness has the lags of all repeats, server_load the median and range of the
    repeats' loads."""
    def words(cell, i, k):
        return {"servers": 2, "lags": [(0, 1, 1, 3), (2, 2, 2, 2), (0, 0, 1, 3)][k - 1],
                "samples": [(t, f"s{s}", "cpu_share", .1 * k + .2 * s + .1 * i)
                            for t in (1, 2) for s in (0, 1)]}
    from lockstep.study import Study
    study = Study(made.study(folder, words, 3, matrix="[matrix]\nseed = 1, 2\n[cell dps]\n"
                             "sync = dps\n"))
    columns_are(draw(study, "staleness"), [
        (rgb(c), lag - .425 + (i + .5) * .425, .475 * .425, share)
        for i, c in enumerate(("#1a1a1a", "#9a3412"))
        for lag, share in ((0, 25), (1, 25), (2, 100 / 3), (3, 100 / 6))], "staleness")
    figure = draw(study, "server_load")
    loads = [[10 * k + 20 * s + 10 * i for k in (1, 2, 3)] for i in (0, 1) for s in (0, 1)]
    bars_are(None, figure, [(rgb(made.BACKENDS["ring"]), 0, v[1], row, .36)
                            for row, v in enumerate(loads)],
             [f"dps seed={1 + i} s{s}  {loads[2 * i + s][1]}%" for i in (0, 1) for s in (0, 1)],
             name="server_load")
    p = figure.panels[0]
    found = [(at,) for c, width, at in p.lines if c == BLACK and width == 1.5
             and len(at) == 2 and at[0][1] == at[1][1]]
    same(found, [([(p.pixel("x", v[0]), p.row(row, 4)), (p.pixel("x", v[2]), p.row(row, 4))],)
                 for row, v in enumerate(loads)], "server_load: ranges")


def asleep(folder):
    """Workers that sleep need no cores, so nothing marks them."""
    from lockstep.study import Study
    study = Study(made.study(folder, lambda cell, i, k: {"over": True, "step_us": 20000 + i},
                             matrix="[matrix]\npace = 5, 6\n"))
    for name in "throughput", "breakdown", "util_bars":
        figure = draw(study, name)
        assert not any("‡" in text for *_, text in figure.texts), (name, figure.texts)


ALONE = (verbs, only_used_parts, of_all_repeats, asleep)
