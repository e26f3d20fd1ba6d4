"""Draws every figure from runs that nobody trained, reads each drawing back, and
compares it with what the runs have.

    draw.py PLOTS       exit status 77 if there is no gnuplot

The test computes what a figure must show from the numbers that it put into the
runs. Bars, lines, points, marks of ranges and labels of the SVG must be at these
places, to the pixel (draw_bars.py, draw_lines.py). Here are the tests of all
figures together.
"""

import csv
import os
import pathlib
import re
import shutil
import struct
import sys
import tempfile

import draw_bars
import draw_lines
import made
from drawn import DRAWN, Drawn, png_rows
from made import MIB, Made, cells_of

from lockstep import drawing, figures, prepare
from lockstep.files import Error
from lockstep.study import Study

PLOTS = pathlib.Path(sys.argv[1]).resolve()
HOSTILE = "it's \"x\" `touch PWN` $(touch PWN);%d {@p} \\n <b>&amp; ü‡ #"
ABOUT = "baseline = cell0\ntarget_loss = 2.6\n"


def error(*words, **more):
    """The Error of a drawing that must fail."""
    try:
        figures.draw(*words, **more)
    except Error as e:
        return str(e)
    raise AssertionError(f"{words} was drawn")


def scripts_only_draw():
    """No script starts a program or opens another file of the data."""
    for path in PLOTS.glob("*.gp"):
        text = re.sub(r"(?m)^\s*#.*|\s# .*", "", path.read_text())
        for word in ("system", "`", '"<', "'<", "popen", "shell", "awk", "stats", "ARG"):
            assert word not in text, (path.name, word)
        assert set(re.findall(r'load "(.*?)"', text)) <= {p.name for p in PLOTS.glob("*.gp")}
    assert not [p for p in PLOTS.iterdir() if p.suffix != ".gp"]


def named():
    """Figures have descriptions. Parts and unknown names are refused."""
    names = dict(figures.names())
    assert names["throughput"].startswith("tokens a second of each cell, with the median")
    assert not {"style", "bars", "lines", "columns", "curves", "timeline"} & set(names)
    assert all(5 < len(text) < 150 for text in names.values()), names
    assert set(drawing.FIGURES) <= set(names)
    figures.check(" ".join([*names, "none"]))
    for name, said in (("bars", "only a part"), ("nothing", "no such figure"),
                       ("../plots/loss", "no such figure"), ("a;b", "no such figure"),
                       ("loss,memory", "no such figure"), ("loss ", "no such figure"),
                       ("none", "no such figure")):
        try:
            figures.check(name, "figure")
        except Error as e:
            assert said in str(e) and "try: a name from lockstep report --help" in str(e), e
        else:
            raise AssertionError(name)


def without_data(folder):
    """A figure without data is not drawn, and says what is missing."""
    one = Study(made.run(folder / "one", samples=[]))
    for name, said in (
            ("gpu_timeline", "no run has samples of a GPU"), ("pipeline", "no run has stages"),
            ("server_load", "no run had a server"), ("bandwidth", "emulated links"),
            ("memory_timeline", "no run has samples"), ("scaling", "one worker"),
            ("util_timeline", "no run has samples"), ("staleness", "column lag"),
            ("sweep", "[matrix]"), ("heatmap", "[matrix]"), ("speedup", "baseline="),
            ("loss_seeds", "validation loss"), ("loss_apart", "baseline="), ("law", "no sweep.txt"),
            ("scale", "no simulate.csv")):
        line = error(one, name)
        assert line.startswith(f"{name}: ") and said in line and "\n" not in line, line
        assert not (folder / "one/figures" / f"{name}.svg").exists(), name
    shutil.copytree(folder / "one", folder / "cut")
    for name in "steps", "breakdown":
        (folder / f"cut/{name}.csv").unlink()
    (folder / "cut/summary.json").write_text("{}")
    cut = Study(folder / "cut")
    for name in drawing.FIGURES:
        assert error(cut, name).startswith(f"{name}: "), name
    one.experiment.figures = "loss, nothing breakdown loss"
    drawn, errors = figures.draw_all(one)
    assert drawn == ["loss", "breakdown"] and len(errors) == 1 and "nothing" in errors[0]
    one.experiment.figures = "none"
    assert figures.draw_all(one) == ([], [])
    try:
        figures.draw_folder(str(folder), "loss")
    except Error as e:
        assert "neither an experiment nor a run" in str(e)


def of_a_size(m):
    """A picture has exactly the size that was asked for."""
    for size in "1600x900", "600x900", "200x100":
        svg, png = figures.draw(m.study, "throughput", size)
        assert struct.unpack(">II", pathlib.Path(png).read_bytes()[16:24]) == tuple(
            map(int, size.split("x"))), size
    for size in "9", "200x99", "20001x100", "1e3x900", "900", "-200x200", "x", "1600x900 ":
        assert f"size={size}: must be WIDTHxHEIGHT" in error(m.study, "throughput", size)


def nothing_is_cut(m, cells):
    """No letter of a PNG is at an edge. Whole names are in the CSV, and labels have at
    most 40 letters."""
    whole = {c.shown for c in m.study.cells}
    for name in ("throughput", "speedup", "bytes", "breakdown", "util_bars", "loss_step",
                 "staleness", "memory_timeline"):
        svg, png = map(pathlib.Path, figures.draw(m.study, name, "1120x640"))
        wide, high, rows, step = png_rows(png)
        edge = bytes([255] * step)
        for y, row in enumerate(rows):
            assert row[:step] == edge and row[-step:] == edge, (name, "at the side", y)
        assert set(rows[0] + rows[-1]) == {255}, (name, "above or below")
        with open(svg.with_suffix(".csv"), newline="", encoding="utf-8") as f:
            said = {row.get("cell") or row["name"] for row in csv.DictReader(f)}
        assert name == "memory_timeline" or said & whole == whole, (name, whole - said)
        labels = [t for *_, t in Drawn(svg).texts if t.startswith("cell")]
        assert len(set(labels)) == (11 if name == "memory_timeline" else cells), (name, labels)
        assert all(len(t.split("  ")[0]) <= 46 for t in labels), (name, labels)


def of_a_stranger(folder):
    """Names, folders and samples that mean something to a shell, to gnuplot or to CSV
    are only text."""
    home = folder / "x'; touch PWN;'\n\"$(touch PWN)`touch PWN`"
    cells = [(HOSTILE, {"backend": "x'`touch PWN`", "step_us": 20000, "samples": [
        (t, rank, metric, value) for t in (1, 2, 3) for rank, metric, value in (
            ("0", "compute_share", .5), ("0", "resident_bytes", 5 * MIB),
            ("x\"||system(\"touch PWN\")||\"", "resident_bytes", 1000),
            ("$(touch PWN)", "cpu_share", .1), ("0", "`touch PWN`", 1),
            ("s0", "cpu_share", "`touch PWN`"), ("-1", "compute_share", 1),
            ("9" * 9, "compute_share", 1), ("0", "compute_share", "1e999"))]}),
        ("plain, too", {"step_us": 10000})]
    study = Study(made.study(home, cells, about=ABOUT.replace("cell0", cells[1][0])))
    before = set(os.listdir("."))
    for name in drawing.FIGURES:
        try:
            svg, _ = figures.draw(study, name)
        except Error as e:
            assert "gnuplot" not in str(e), e
            continue
        said = [text for *_, text in Drawn(svg).texts]
        if name in ("throughput", "breakdown", "loss_step", "util_bars"):
            short = drawing.short(study.cells[0].shown).replace("'", "\u2019")
            assert any(text.startswith(short.strip()) for text in said), (short, said)
        assert "system(" not in "".join(said), said
    assert set(os.listdir(".")) == before
    assert not [p for p in (*folder.rglob("PWN*"), *PLOTS.rglob("PWN*"))
                if p != home], "a command ran"
    run = made.run(folder / "linked")
    (folder / "elsewhere").mkdir()
    (run / "figures").symlink_to(folder / "elsewhere")
    assert "a link" in error(Study(run), "loss")
    assert not list((folder / "elsewhere").iterdir())


def of_a_script(m, folder):
    """A script without a function of Python draws runs.csv. One that fails or never
    ends is an Error and leaves the old picture."""
    plots = folder / "scripts"
    shutil.copytree(PLOTS, plots)
    os.environ["LOCKSTEP_PLOTS"] = str(plots)
    script = plots / "mine.gp"
    script.write_text(
        '# plots/mine.gp - one point for each\n# run: with its colour\n\nload "style.gp"\n'
        'set xrange [0:150]\nset yrange [0:100]\n'
        'plot FILE using (1e3 * column("step_s")):"repeat":(hex(stringcolumn("colour"))) '
        'with points pt 6 lc rgb variable notitle, 2 with points pt 6 lc rgb '
        'backend_colour("ring") title note\n')
    try:
        assert dict(figures.names())["mine"] == "one point for each run"
        p = Drawn(figures.draw(m.study, "mine")[0]).panels[0]
        found = {(q[0], round(q[2], 1)) for q in p.points}
        for i in range(m.n):
            for k, t in enumerate(m.times(i), 1):
                place = p.at(1e3 * t, k)
                assert any(c == m.colour(i) and abs(x - place[0]) < .7 for c, x in found)
        old = (pathlib.Path(m.study.out) / "figures/mine.svg").read_bytes()
        script.write_text('load "style.gp"\nplot nonsense(1)\n')
        assert "gnuplot failed" in error(m.study, "mine")
        script.write_text("while (1) { x = 1 }\n")
        figures.DEADLINE, deadline = 1, figures.DEADLINE
        assert "more than 1 s" in error(m.study, "mine")
        figures.DEADLINE = deadline
        assert (pathlib.Path(m.study.out) / "figures/mine.svg").read_bytes() == old
        assert not [f for f in os.listdir(pathlib.Path(m.study.out) / "figures")
                    if f.startswith(".")]
    finally:
        del os.environ["LOCKSTEP_PLOTS"]


def lightness(colour):
    """CIE L*, 0 to 100, of "#rrggbb": how light it is in grey print."""
    linear = [c / 12.92 if c <= .04045 else ((c + .055) / 1.055) ** 2.4
              for c in (v / 255 for v in made.rgb(colour))]
    grey = sum(w * c for w, c in zip((.2126, .7152, .0722), linear))
    return 116 * grey ** (1 / 3) - 16 if grey > .008856 else 903.3 * grey


def colours_differ_in_grey():
    kinds = ("forward", "backward", "update", "exposed", "wait", "slowed")
    assert drawing.backends() and set(drawing.backends()) == set(made.BACKENDS)
    for name, palette in {
            "backends": list(made.BACKENDS.values()), "workers": drawing.WORKERS,
            "kinds": [drawing.KINDS[k][0] for k in kinds],
            "verbs": [c for c, _ in prepare.VERB_COLOURS.values()],
            "parts": prepare.PART_COLOURS}.items():
        by = sorted(palette, key=lightness)
        assert len(by) > 5, name
        for a, b in zip(by, by[1:]):
            assert lightness(b) - lightness(a) >= 2.5, (name, a, b)


def main():
    if not shutil.which("gnuplot"):
        print("skipped: no gnuplot")
        sys.exit(77)
    scripts_only_draw()
    named()
    colours_differ_in_grey()
    with tempfile.TemporaryDirectory(prefix="lockstep-draw-") as name:
        folder = pathlib.Path(name)
        for n, repeat in ((1, 1), (2, 1), (2, 2), (12, 3)):
            m = Made(folder / f"{n}x{repeat}", cells_of(n, repeat), repeat, ABOUT)
            draw_bars.all_of(m, 2.6)
            draw_lines.all_of(m, 2.6)
            figures.KINDS = ("svg",)  # a PNG takes longer: those of one cell are enough
            print("drawn:", n, "cells,", repeat, "repeats")
        figures.KINDS = ("svg", "png")
        for check in (*draw_bars.ALONE, *draw_lines.ALONE):
            check(folder / check.__name__)
        assert DRAWN == set(dict(figures.names())), DRAWN ^ set(dict(figures.names()))
        of_a_size(m)
        of_a_script(m, folder)
        without_data(folder / "without")
        of_a_stranger(folder)
        nothing_is_cut(Made(folder / "many", [
            (f"cell_{'WMwm'[i % 4] * 20}_{i}_of_a_name_that_is_too_long_for_a_label", words)
            for i, (_, words) in enumerate(cells_of(33, 1))], 1, ""), 33)


main()
