"""Compares figures of lines with the runs that they show (draw.py)."""

import shutil

import made
from drawn import checked, draw, same
from made import BACKENDS, BATCH, CONTEXT, MIB, WORKERS, Made, median, rgb
from lockstep import figures
from lockstep.drawing import FIGURES
from lockstep.study import Study


# ---- lines

def lines_are(panel, expected, name, widths=None):
    """`expected`: (colour, [(x, y)]). Lines of the axes, arrows and marks of ranges have
    other widths."""
    found = [(c, points) for c, width, points in panel.lines
             if (width in widths if widths else len(points) > 2)]
    same(found, [(c, [panel.at(x, y) for x, y in points]) for c, points in expected], name)


def curve_colours(m):
    ways = [w["backend"] for _, w in m.cells]
    own = max(map(ways.count, ways)) > 4 or m.n > 1 and len(set(ways)) == 1
    return [rgb(WORKERS[i % 6]) if own else m.colour(i) for i in range(m.n)]


def says_first(figure):
    """Whether it says that it shows one repeat of several."""
    return any("the first repeat of each cell" in text for *_, text in figure.texts)


def curves(m, target):
    steps = range(1, 21)
    first = [m.times(i)[0] for i in range(m.n)]
    tokens = [1e-6 * CONTEXT * BATCH * m.world(i) for i in range(m.n)]
    colours = curve_colours(m)
    for name, points in (
            ("loss_step", lambda i: [(s, m.loss(i, s)) for s in steps]),
            ("loss_tokens", lambda i: [(s * tokens[i], m.loss(i, s)) for s in steps]),
            ("loss_seconds", lambda i: [(s * first[i], m.smooth(i, s))
                                        for s in steps[9:]])):
        figure = draw(m.study, name)
        lines_are(figure.panels[0], [(colours[i], points(i)) for i in range(m.n)], name)
        assert [(k[0], k[1]) for k in figure.keys] == [
            (m.label(i), colours[i]) for i in range(m.n)], (name, figure.keys)
        assert says_first(figure) == (m.repeat > 1), name
    p = figure.panels[0]
    needs = {i: s for i in range(m.n) for s in steps[9:] if m.smooth(i, s) <= target
             and (s == 10 or m.smooth(i, s - 1) > target)}
    found = [q for q in p.points if abs(q[3] - p.pixel("y", target)) < .1
             and q[1] == "gpPt6"]
    for i, s in needs.items():
        same([q for q in found if q[0] == colours[i] and
              abs(q[2] - p.pixel("x", s * first[i])) < 2][:1],
             [(colours[i], "gpPt6", *p.at(s * first[i], target))], "reached")


def loss(folder):
    run = made.run(folder, loss=lambda s: 5 - s / 10, val=lambda s: 4 - s / 50, restarts=8)
    figure = draw(Study(run), "loss")
    p = figure.panels[0]
    lines_are(p, [(rgb("#a9c9e6"), [(s, 5 - s / 10) for s in range(1, 21)])], "loss", (1.0,))
    same([q for q in p.points if q[2] < p.frame[2] + 1 and q[3] > p.pixel("y", 4.01)],
         [(rgb("#c2410c"), "gpPt6", *p.at(s, 4 - s / 50)) for s in (5, 10, 15, 20)], "loss")
    said = [text for _, _, _, _, text in figure.texts]
    assert "restart" in said and "training, smoothed" in said
    at = next(x for x, _, _, _, text in figure.texts if text == "restart")
    assert abs(at - p.pixel("x", 8)) < 1
    few = draw(Study(made.run(folder / "few", steps=3)), "loss")
    assert "training, smoothed" not in [text for _, _, _, _, text in few.texts]


def marks_of(panel, shape):
    return [q for q in panel.points if q[1] == shape]


def sweep(folder):
    """Two keys, of which the last is no number; then one key of numbers."""
    nets = ("100mbit", "1gbit")

    def us(i, k):
        return 10000 + 3000 * ((7 * i) % 5) + (0, 900, -500)[k - 1] * (i + 1)

    for matrix, ways, places in (
            ("precision = fp32, bf16\nnet = 100mbit, 1gbit\n", 4, nets),
            ("bucket_mb = 0.5, 1, 4\n[cell ring]\nsync = ring\n[cell dps]\nsync = dps\n",
             6, (0.5, 1, 4))):
        def words(cell, i, k):
            return {"backend": cell.settings.get("sync", "ring"),
                    "net": cell.settings.get("net", ""), "step_us": us(i, k)}
        out = folder / f"sweep{ways}"
        study = Study(made.study(out, words, 3, matrix=f"[matrix]\n{matrix}"))
        rates = [[CONTEXT * BATCH * 2e6 / us(i, k) for k in (1, 2, 3)] for i in range(ways)]
        across, series = len(places), range(ways // len(places))
        figure = draw(study, "sweep")
        p = figure.panels[0]
        if places is nets:
            assert [t for _, t in p.x_tics] == list(nets)
            xs = [at for at, _ in p.x_tics]
        else:
            xs = [p.pixel("x", x) for x in places]
        colours = [rgb(BACKENDS[way]) for way in (
            ("ring", "ring") if places is nets else ("ring", "dps"))]
        points = [(colours[s], xs[x], p.pixel("y", median(rates[s * across + x])))
                  for s in series for x in range(across)]
        same([(c, x, y) for c, _, x, y in p.points], points, "sweep")
        marks = [(colours[s], [(xs[x], p.pixel("y", min(rates[s * across + x]))),
                                    (xs[x], p.pixel("y", max(rates[s * across + x])))])
                 for s in series for x in range(across)]
        same([(c, sorted(at, reverse=True)) for c, _, at in p.lines
              if len(at) == 2 and at[0][0] == at[1][0]],
             [(c, sorted(at, reverse=True)) for c, at in marks], "sweep: ranges")
        assert [k[0] for k in figure.keys] == (
            ["precision=fp32", "precision=bf16"] if places is nets else ["ring", "dps"])
        heatmap(study, rates, across)


def heatmap(study, rates, across):
    """A field for each cell, in its row and column, with its number and colour."""
    p = draw(study, "heatmap").panels[0]
    down = len(rates) // across
    left, top, right, bottom = p.frame
    wide, high = (right - left) / across, (bottom - top) / down
    fields = [(left + wide * (i % across), bottom - high * (i // across + 1),
               left + wide * (i % across + 1), bottom - high * (i // across))
              for i in range(len(rates))]
    same([b[1:] for b in p.bars], fields, "heatmap", 1.0)
    values = [median(r) for r in rates]
    for i, field in enumerate(fields):
        said = next(t for x, y, t in p.texts if field[0] < x < field[2]
                    and field[1] < y < field[3])
        assert said == f"{values[i]:.0f}", (said, values[i])
    # the more, the darker
    order = sorted(range(len(fields)), key=lambda i: values[i])
    light = [sum(next(b[0] for b in p.bars if abs(b[1] - fields[i][0]) < 1
                      and abs(b[2] - fields[i][1]) < 1)) for i in order]
    assert light == sorted(light, reverse=True), light


def apart_from_a_twin(folder):
    """Before the baseline there are two cells that are one, so its number among the
    cells is another one."""
    cells = [("one", {}), ("two", {"loss": lambda s: 7 - s / 10}), ("one more", {}),
             ("base", {"loss": lambda s: 5 - s / 10}), ("other", {"loss": lambda s: 6 - s / 10})]
    out = made.study(folder, cells, about="baseline = base\n")
    about = out / "cells/one_more/r1/run.json"  # cells of equal settings are one
    about.write_text(about.read_text().replace('"log": 2', '"log": 0'))
    study = Study(out)
    assert [c.name for c in study.cells] == ["one", "two", "base", "other"]
    figure = draw(study, "loss_apart")
    figure.panels[0].log = "y"
    points = {name: [(s, max(abs(loss(k) / (5 - k / 10) - 1) for k in range(1, s + 1)))
                     for s in range(1, 21)]
              for name, loss in (("one", lambda s: 2 + 3 / s), ("two", cells[1][1]["loss"]),
                                 ("other", cells[4][1]["loss"]))}
    lines_are(figure.panels[0], [(rgb(WORKERS[i]), line) for i, line in
                                 enumerate(points.values())], "loss_apart")


def loss_apart(folder):
    """The greatest difference so far, relative, from the losses of the baseline."""
    def other(s):
        return 5 - s / 10 + (1e-3 if s in (4, 9) else 1e-4)
    cells = [("base", {"loss": lambda s: 5 - s / 10}), ("same", {"loss": lambda s: 5 - s / 10}),
             ("other", {"loss": other})]
    study = Study(made.study(folder, cells, about="baseline = base\n"))
    figure, most, points = draw(study, "loss_apart"), 0.0, []
    figure.panels[0].log = "y"
    for s in range(1, 21):
        most = max(most, other(s) / (5 - s / 10) - 1)
        points.append((s, most))
    lines_are(figure.panels[0], [(rgb(BACKENDS["ring"]), points)], "loss_apart")
    assert [k[0] for k in figure.keys] == ["other"], figure.keys


def many_panels(folder):
    """A heatmap has a panel for each named cell, also the sixth."""
    study = Study(made.study(
        folder, lambda c, i, k: {"step_us": 20000 + 1000 * i},
        matrix="[matrix]\nclip = 1, 2\nbucket_mb = 1, 2\n" + "".join(
            f"[cell c{i}]\nseed = {i}\n" for i in range(6))))
    figure = draw(study, "heatmap")
    assert len(figure.panels) == 6, len(figure.panels)
    for i, panel in enumerate(figure.panels):
        rates = [CONTEXT * BATCH * 2e6 / (20000 + 1000 * (4 * i + k)) for k in range(4)]
        assert sorted(t for _, _, t in panel.texts) == sorted(f"{r:.0f}" for r in rates), i
        assert len(panel.bars) == 4, i
    assert [t.split(":")[0] for *_, t in figure.texts if "tokens per second" in t] == [
        f"c{i}" for i in range(6)]


def loss_seeds(folder):
    """Means and bands over seeds, a panel for each rate."""
    def val(i):
        return lambda s: 4 - s / 20 + (i % 3) ** 2 / 10 + i / 20
    study = Study(made.study(
        folder, lambda c, i, k: {"net": c.settings["net"], "val": val(i),
                                 "step_us": 10000 * (1 + i % 3)},
        matrix="[matrix]\nnet = 100mbit, 1gbit\nseed = 1, 2, 3\n"))
    figure = draw(study, "loss_seeds")
    for p, panel in enumerate(figure.panels):
        steps = [5, 10, 15, 20]
        seconds = [s * .02 for s in steps]
        losses = [[val(i)(s) for i in range(3 * p, 3 * p + 3)] for s in steps]
        lines_are(panel, [(rgb(made.BACKENDS["ring"]), [
            (t, sum(v) / 3) for t, v in zip(seconds, losses)])], "loss_seeds", (2.5,))
        same([b[1:] for b in panel.bars],
             [(panel.pixel("x", .1), panel.pixel("y", max(losses[0])),
               panel.pixel("x", .4), panel.pixel("y", min(losses[-1])))], "band")
    said = [t for _, _, _, _, t in figure.texts if t.startswith("Validation")]
    assert "net=100mbit" in said[0] and "net=1gbit" in said[1], said


def bandwidth(folder):
    """Left all steps, right how long those of several workers are held up."""
    rates = {"100mbit": .1, "1gbit": 1, "2.5gbit": 2.5}
    ways = "ring", "dps", "local"

    def words(cell, i, k):
        way = cell.settings["sync"]
        return {"backend": way, "net": cell.settings["net"],
                "world": 1 if way == "local" else 2, "step_us": 50000 - 3000 * i,
                "exchange_s": None if way == "local" else .03 / (i + 1)}
    study = Study(made.study(
        folder, words, matrix=f"[matrix]\nnet = {', '.join(rates)}\n" + "".join(
            f"[cell {way}]\nsync = {way}\n" for way in ways)))
    figure = draw(study, "bandwidth")
    held = made.KINDS["exposed"] + made.KINDS["wait"]
    for panel in figure.panels:
        panel.log = "xy"
    for panel, shown, lines in zip(figure.panels, (ways, ways[:2]), (
            lambda i: [50 - 3 * i], lambda i: [(50 - 3 * i) * held, 30 / (i + 1)])):
        lines_are(panel, [(rgb(made.BACKENDS[way]), [
            (rate, lines(3 * w + x)[k]) for x, rate in enumerate(rates.values())])
            for w, way in enumerate(shown) for k in range(len(lines(0)))],
            "bandwidth")
    assert {t for *_, t in figure.texts} >= set(ways), figure.texts  # the key


def scaling(folder):
    """Strong: the same global batch. Weak: the same batch of each worker. Cells with
    other links are another line, and so are other formats, with a base of their own. A
    cell without a base is named."""
    sizes = [(1, 8), (2, 4), (2, 8), (4, 2), (4, 8)]
    kinds = [(net, form) for net in ("100mbit", "10gbit") for form in ("fp32", "bf16")]

    def us(n, batch, net, form):
        if n == 1:  # its time does not depend on the links
            return {"fp32": 20000, "bf16": 12500, "fp16": 9000}[form]
        return 9000 + 1700 * n * batch * (1 + (net == "100mbit")) + 300 * (form == "bf16")

    def rate(k, net, form):
        n, batch = sizes[k]
        return CONTEXT * n * batch / us(n, batch, net, form)

    def words(cell, i, k):
        s = cell.settings
        n, batch = int(s["workers"]), int(s["batch"])
        return {"world": n, "batch": batch, "net": s["net"], "over": n > 3,
                "step_us": us(n, batch, s["net"], s["precision"])}
    out = made.study(folder, words, matrix="[matrix]\nnet = 100mbit, 10gbit\nprecision = fp32, "
                     "bf16, fp16\nsize = " + ", ".join(
                         f"workers={n} batch={b} (eval_batches={8 // n})" for n, b in sizes)
                     + "\n")
    for path in out.glob("cells/*fp16_workers=1*"):
        shutil.rmtree(path)
    figure = draw(Study(out), "scaling")
    for panel, which in zip(figure.panels, ((1, 3), (2, 4))):
        lines_are(panel, [(rgb(WORKERS[i]), [(1, 1)] + [
            (sizes[k][0], rate(k, *kind) / rate(0, *kind)) for k in which])
            for i, kind in enumerate(kinds)], "scaling")
        ideal = [at for c, width, at in panel.lines if c == (153, 153, 153)]
        same([(at,) for at in ideal], [([panel.at(.8, .8), panel.at(4.3, 4.3)],)], "ideal")
    assert [k[0] for k in figure.keys if k[0] != "ideal"] == [
        f"net={net} precision={form} [ring]" for net, form in kinds] * 2, figure.keys
    said = " ".join(t for _, _, _, _, t in figure.texts)
    assert "no run of one worker is like net=100mbit…rs=2 batch=4 and 7 more" in said, said


# ---- lines by time

def by_time(m):
    """A panel for each cell, with a line for each of its workers and servers."""
    for name, metric, unit in (("util_timeline", "compute_share", 100),
                               ("memory_timeline", "resident_bytes", 1 / MIB)):
        figure = draw(m.study, name)
        assert len(figure.panels) == m.n
        for i, panel in enumerate(figure.panels):
            ranks = [str(w) for w in range(m.world(i))]
            if unit < 1:
                ranks += [f"s{s}" for s in range(m.cells[i][1]["servers"])]
            lines_are(panel, [(
                rgb(WORKERS[(int(r.strip("s")) + 3 * (r[0] == "s")) % 6]),
                [(t / 2, unit * made.sampled(t, r)[metric]) for t in range(1, 13)])
                for r in ranks], name, (2.0,))
            grey = [at for c, _, at in panel.lines if c == (221, 221, 221)]
            above = [at for at in grey if len(at) > 1 and abs(at[0][1] - at[1][1]) > 1]
            if unit > 1:
                same([(sorted(at),) for at in above],
                     [(sorted([panel.at(3, 0), panel.at(3, 60)]),)], "evaluation")
        titles = [t for _, _, _, _, t in figure.texts if t.startswith("cell")]
        assert sorted(titles) == sorted(name for name, _ in m.cells), titles
        assert says_first(figure) == (m.repeat > 1), name


def many_workers(folder):
    """A panel has twelve lines at most, and says how many workers there are."""
    study = Study(made.run(folder, world=14))
    for name in "util_timeline", "memory_timeline":
        figure = draw(study, name)
        assert any("; 12 of 14 workers and servers" in t for *_, t in figure.texts), name
        assert len([k for k in figure.keys]) == 12, figure.keys
        about = FIGURES[name](study).about
        looks = list(zip(about["colour"], about["dash"]))[-12:]  # the key's
        assert len(set(looks)) == 12, looks


def of_a_gpu(folder):
    """The line of a worker with a GPU is the GPU's share, not that of the host, which
    only waits."""
    values = {"compute_share": .05, "gpu_compute_share": .93, "gpu_comm_share": .21,
              "gpu_util_share": .94, "gpu_memory_bytes": 3 << 30, "gpu_power_w": 250,
              "gpu_clock_mhz": 1380}
    run = made.run(folder, kinds={"forward": .01, "other": .99, "gpu_compute": .93,
                                  "gpu_comm": .21},
                   samples=[(t / 10, str(r), k, v + (r and k == "gpu_power_w") * 10)
                            for t in range(1, 30) for r in (0, 1) for k, v in values.items()])
    study = Study(run)
    figure = draw(study, "gpu_timeline")
    for panel, top in zip(figure.panels, (94, 3072, 250, 1380)):
        lines_are(panel, [(rgb(WORKERS[r]), [(t / 10, top + (r and top == 250) * 10)
                                             for t in range(1, 30)]) for r in (0, 1)],
                  "gpu_timeline", (5.0, 4.0))
    figure = draw(study, "util_timeline")
    lines_are(figure.panels[0], [(rgb(WORKERS[r]), [(t / 10, v) for t in range(1, 30)])
                                 for r in (0, 1) for v in (93, 21)], "of a GPU", (2.0,))
    p = draw(study, "util_bars").panels[0]
    tops = sorted(p.pixel("y", v) for v in (93, 93, 21, 21))
    same([(b[2],) for b in p.bars], [(t,) for t in tops], "util_bars of a GPU")
    p = draw(study, "breakdown").panels[0]
    ms = [p.pixel("x", v) for v in (0, 46.5, 50, 10.5)]
    same([(b[1], b[3]) for b in p.bars], [(ms[0], ms[1]), (ms[1], ms[2]), (ms[0], ms[3])],
         "breakdown of a GPU")


# ---- files that are no run's

SWEEP = """
# ring, 2 workers: alpha 13.2 us, 2.24 GB/s each way (fitted)
#    size(B)       count  type    time(us)    algbw    busbw  #wrong     law(us)  cpu_s/GB
        1024         256  fp32        30.0    0.030    0.030       0        25.0     5.078
     1000000      250000  fp32      2000.0    1.821    0.500       0      1600.0     0.311

# dps, 4 workers: alpha 3.6 us, 0.95 GB/s each way (given); 2 messages, 2 of the bytes
     1000000      250000  fp32      3000.0    0.390    0.700       0      3125.0    -4.0    0.525
"""


def of_files(folder):
    """law, size_sweep and scale."""
    folder.mkdir()
    (folder / "sweep.txt").write_text(SWEEP)

    def one(name):
        from pathlib import Path
        return checked(name, *map(Path, figures.draw_folder(str(folder), name)))
    p = one("law").panels[0]
    ring, dps = rgb(made.BACKENDS["ring"]), rgb(made.BACKENDS["dps"])
    same([(c, top, bottom) for c, _, top, _, bottom in p.bars],
         [(ring, p.pixel("y", 2), p.frame[3]), (dps, p.pixel("y", 3), p.frame[3])], "law")
    same([(at[0][1],) for c, width, at in p.lines if width == 3],
         [(p.pixel("y", 1.6),), (p.pixel("y", 3.125),)], "law")
    assert [t for _, _, t in p.texts] == ["+25.0%", "-4.0%"], p.texts
    p = one("size_sweep").panels[0]
    p.log = "xy"
    same([(c, x, y) for c, _, x, y in p.points],
         [(ring, *p.at(1024, .03)), (ring, *p.at(1e6, .5)), (dps, *p.at(1e6, .7))], "sweep")
    same([(at,) for c, width, at in p.lines if width == 1.5 and c == ring],
         [([p.at(1024, 1024 / 25e3), p.at(1e6, 1e6 / 1600e3)],)], "size_sweep: law")
    rows = {"ring": [(2, .5, .4), (4, .6, .5), (8, .75, .7)], "sps": [(2, 2, 1.9), (8, 9, 8)]}
    made.write(folder / "simulate.csv", [
        {"workers": n, "backend": way, "mb": 1, "simulated_s": s, "law_s": law,
         "ratio": s / law} for way in rows for n, s, law in rows[way]])
    left, right = one("scale").panels
    left.log, right.log = "xy", "x"
    same([(c, x, y) for c, _, x, y in left.points],
         [(rgb(made.BACKENDS[w]), *left.at(n, s)) for w in rows for n, s, _ in rows[w]],
         "scale")
    same([(c, at) for c, width, at in left.lines if width == 1.5],
         [(rgb(made.BACKENDS[w]), [left.at(n, law) for n, _, law in rows[w]])
          for w in rows], "scale: law")
    same([(c, x, y) for c, _, x, y in right.points],
         [(rgb(made.BACKENDS[w]), *right.at(n, s / law)) for w in rows
          for n, s, law in rows[w]], "scale: ratio")


def pipeline(folder):
    """Boxes of a timetable, and of a run's trace.json: in this a rank has two chunks,
    and the backward of a micro-batch begins with the last one."""
    from pathlib import Path
    folder.mkdir()
    boxes = [("a", 0, "forward", 0, 0, 0, 10), ("a", 1, "forward", 0, 0, 10, 20),
             ("a", 1, "backward", 0, 0, 20, 40), ("a", 0, "backward", 0, 0, 40, 60),
             ("b", 1, "forward", 3, 0, 5, 30)]
    made.write(folder / "timetable.csv", [dict(zip(
        ("schedule", "stage", "action", "micro", "chunk", "begin_ms", "end_ms"), b))
        for b in boxes])
    figure = checked("pipeline", *map(Path, figures.draw_folder(str(folder), "pipeline")))
    blue = {"forward": rgb("#c2dcf0"), "backward": rgb("#235a97")}
    for panel, schedule in zip(figure.panels, "ab"):
        boxes_are(panel, [(blue[a], stage, micro, begin, end)
                          for s, stage, a, micro, _, begin, end in boxes if s == schedule], 2)
    run = made.run(folder / "run", stages=2)
    names = ["forward"] * 4 + ["backward"] * 4
    micros, chunks = (0, 1) * 4, (0, 0, 1, 1, 1, 1, 0, 0)
    events = [{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "x"}}]
    for step, start in ((3, 1000), (4, 91000), (5, 181000)):
        for rank in 0, 1:
            events += [{"ph": "X", "name": "step", "pid": rank, "ts": start + 100 * rank,
                        "dur": 90000, "args": {"step": step}}]
            events += [{"ph": "X", "name": name, "pid": rank, "dur": 9000 + step,
                        "ts": start + 10000 * i + 300 * rank, "args": {"micro": micro}}
                       for i, (name, micro) in enumerate(zip(names, micros))]
    (run / "trace.json").write_text(made.json.dumps({"traceEvents": events}))
    study, green = Study(run), {"forward": rgb("#c7e9cf"), "backward": rgb("#2f7d55")}
    for step, more in ((4, {}), (5, {"step": 5})):
        figure = draw(study, "pipeline", **more)
        boxes_are(figure.panels[0], [
            ((green if chunk else blue)[name], rank, micro, 10 * i + .3 * rank,
             10 * i + .3 * rank + 9 + step / 1000) for rank in (0, 1)
            for i, (name, micro, chunk) in enumerate(zip(names, micros, chunks))], 2)
        said = [t for _, _, _, _, t in figure.texts]
        assert "rank" in said and any(t.startswith(f"step {step}:") for t in said), said
        assert [k[0] for k in figure.keys] == [
            "forward, even chunk", "forward, odd chunk", "backward, even chunk",
            "backward, odd chunk"]


def boxes_are(panel, expected, rows):
    """`expected`: (colour, row, number, begin, end)."""
    high = (panel.frame[3] - panel.frame[1]) / rows
    at = [(c, panel.pixel("x", begin), panel.row(row, rows) - .42 * high,
           panel.pixel("x", end), panel.row(row, rows) + .42 * high)
          for c, row, _, begin, end in expected]
    same(panel.bars, at, "pipeline")
    for box, (_, _, micro, _, _) in zip(at, expected):
        assert [t for x, y, t in panel.texts if box[1] < x < box[3]
                and box[2] < y < box[4]] == [str(micro)], (box, panel.texts)


def all_of(m, target):
    """All figures of lines of a study of named cells."""
    curves(m, target)
    by_time(m)


ALONE = (loss, sweep, loss_apart, apart_from_a_twin, many_panels,
         many_workers, loss_seeds, bandwidth, scaling, of_a_gpu, of_files, pipeline)
