"""Draws every figure from the sample data, as PNG and as SVG.

    draw.py PLOTS       exit status 77 if there is no gnuplot

gnuplot must succeed and print nothing. The PNG must be large enough, and the SVG
must be valid XML with lines and text. plots/sample/figures.txt says for each
figure which folder of the sample it is drawn from. The test fails if a .gp is not
in this list.
"""

import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

PARTS = {"style", "cells", "loss_curves", "timeline"}  # other .gp load them


def check_png(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", f"{path.name}: not a PNG"
    width, height = struct.unpack(">II", data[16:24])
    assert width >= 900 and height >= 400, (path.name, width, height)
    assert len(data) > 5000, f"{path.name}: {len(data)} bytes: empty?"


def check_svg(path):
    root = tree.parse(path).getroot()
    assert root.tag.endswith("svg") and root.get("viewBox"), path.name
    marks = [e for e in root.iter()
             if e.tag.rsplit("}")[-1] in ("path", "polygon", "polyline", "use")]
    texts = [e for e in root.iter() if e.tag.endswith("text")]
    assert len(marks) > 10 and len(texts) > 3, (path.name, len(marks))
    sizes = [float(e.get("font-size")) for e in root.iter()
             if e.get("font-size")]
    assert min(sizes) >= 14, (path.name, "letters of", min(sizes))


def draw(plots, name, data, folder):
    for kind, check in (("png", check_png), ("svg", check_svg)):
        out = folder / f"{name}.{kind}"
        done = subprocess.run(
            ["gnuplot", "-c", f"{name}.gp", str(data), str(out)], cwd=plots,
            capture_output=True, text=True, timeout=60)
        said = (done.stdout + done.stderr).strip()
        assert done.returncode == 0 and not said, f"{name}.gp: {said}"
        check(out)


def draws_servers(plots, data, folder):
    """A server has the colour of its backend: here dps's, #f2b04c."""
    draw(plots, "server_load", data, folder)
    bars = re.findall(r"rgb\(\s*242,\s*176,\s*76\)|#f2b04c",
                      (folder / "server_load.svg").read_text(), re.I)
    assert len(bars) >= 7, bars


def draws_of_a_size(plots, data, folder):
    """A PNG has exactly SIZE pixels, even if the figure has another shape."""
    out = folder / "size.png"
    for size, wide, high in ("1600x900", 1600, 900), ("600x900", 600, 900):
        subprocess.run(["gnuplot", "-e", f"SIZE='{size}'", "-c",
                        "throughput.gp", str(data), str(out)], cwd=plots,
                       check=True, timeout=60)
        assert struct.unpack(">II", out.read_bytes()[16:24]) == (wide, high)


def draws_one_key(plots, folder):
    """A heat map of one key has the named cells as rows. Its only numbers are the
    tokens/s in its fields."""
    for names in ("ring", "outer"), ("",):
        (folder / "sweep.csv").write_text(
            "series,x_key,y_key,x,y,tokens_per_s\n" + "".join(
                f"{name},net,,{rate},,{1000 * (k + 2 * i)}\n"
                for i, name in enumerate(names)
                for k, rate in enumerate(("100mbit", "1gbit"))))
        draw(plots, "heatmap", folder, folder)
        said = {"".join(e.itertext()).strip() for e in tree.parse(
            folder / "heatmap.svg").getroot().iter() if e.tag.endswith("text")}
        fields = {str(1000 * k) for k in range(2 * len(names))}
        assert said - {""} == fields | set(names) - {""} | {
            "100mbit", "1gbit", "net", "tokens per second"}, said


def draws_few_steps(plots, folder):
    """loss.gp draws a smoothed line only if a run has more than 3 steps."""
    for steps in 2, 3, 4:
        (folder / "steps.csv").write_text(
            "rank,step,loss,val_loss,restarts\n" + "".join(
                f"0,{k + 1},{5 - k / 10},5,0\n" for k in range(steps)))
        draw(plots, "loss", folder, folder)
        smooth = "smoothed" in (folder / "loss.svg").read_text()
        assert smooth == (steps > 3), steps


def draws_ranges(plots, data, folder):
    """A cell that ran once has no range; one that ran twice has."""
    rows = (data / "table.csv").read_text().splitlines()
    for name in "throughput", "speedup", "memory":
        lines = []
        for repeats in "2", "1":
            (folder / "table.csv").write_text("\n".join(
                [rows[0]] + [re.sub(",2,", f",{repeats},", row, count=1)
                             for row in rows[1:]]) + "\n")
            (folder / "runs.csv").write_text((data / "runs.csv").read_text())
            draw(plots, name, folder, folder)
            lines.append((folder / f"{name}.svg").read_text().count("<path"))
        assert lines[1] < lines[0], (name, lines)


def drawn_values(plots, name, data, folder):
    """All y values that gnuplot would draw, as text."""
    table = folder / "table.txt"
    subprocess.run(["gnuplot", "-e", f"set table '{table}'", "-c", f"{name}.gp",
                    str(data), str(folder / "x.svg")], cwd=plots, check=True,
                   timeout=60)
    return {line.split()[1] for line in table.read_text().splitlines()
            if line.strip() and line[0] != "#"}


def draws_nvml(plots, folder):
    """The figures of a GPU show the shares in the data: NVML's utilisation, the
    share in which the GPU computes, and the share of collectives."""
    data = folder / "nvml"
    data.mkdir()
    (data / "util.csv").write_text("t_s,rank,metric,value\n" + "".join(
        f"{t / 10},0,compute_share,0.05\n{t / 10},0,gpu_compute_share,0.93\n"
        f"{t / 10},0,gpu_comm_share,0.21\n"
        f"{t / 10},0,gpu_util_share,0.94\n{t / 10},0,gpu_power_w,250\n"
        f"{t / 10},0,gpu_memory_bytes,{3 << 30}\n"
        f"{t / 10},0,gpu_clock_mhz,1380\n" for t in range(1, 30)))
    draw(plots, "gpu_timeline", data, folder)
    assert drawn_values(plots, "gpu_timeline", data, folder) == \
        {"94", "3072", "250", "1380"}
    drawn = drawn_values(plots, "util_timeline", data, folder)
    assert {"93", "21"} <= drawn and "5" not in drawn, drawn
    (data / "workers.csv").write_text(
        "cell,backend,workers,worker,utilisation,oversubscribed,gpu_comm\n"
        "ring,ring,2,0,0.93,0,0.21\nring,ring,2,1,0.92,0,0.22\n")
    drawn = drawn_values(plots, "util_bars", data, folder)
    assert {"93", "92", "21", "22"} <= drawn, drawn


def lightness(colour):
    """CIE L*, 0 to 100, of "#rrggbb": how light it is in grey print."""
    linear = [c / 12.92 if c <= .04045 else ((c + .055) / 1.055) ** 2.4
              for c in (v / 255 for v in bytes.fromhex(colour[1:]))]
    grey = sum(w * c for w, c in zip((.2126, .7152, .0722), linear))
    return 116 * grey ** (1 / 3) - 16 if grey > .008856 else 903.3 * grey


def colours_differ_in_grey(plots):
    style = (plots / "style.gp").read_text()
    kinds = dict(re.findall(r'k eq "(\w+)"\s*\? "(#\w+)"', style))
    palettes = {
        "backends": re.findall(r'colour = "(#\w+)', (
            plots / "../core/config/backends.def").read_text()),
        "workers": re.search(r'worker_colour\(i\) = word\("([^"]*)"',
                             style)[1].split(),
        "kinds": [kinds[k] for k in ("forward", "backward", "update", "exposed",
                                     "wait", "slowed")],
        "verbs": re.search(r'verb_colour\(k\) = word\("([^"]*)"', (
            plots / "verbs.gp").read_text())[1].split()}
    for name, palette in palettes.items():
        assert len(palette) > 5, name
        by = sorted(palette, key=lightness)
        for a, b in zip(by, by[1:]):
            assert lightness(b) - lightness(a) >= 2.5, (name, a, b)


def draws_all_cells(plots, folder):
    """13 cells with one backend: the figure has all of them, uses all colours,
    and leaves out of the names the setting that all have."""
    data = folder / "many"
    names = [f"way {k} net=1gbit" for k in range(13)]
    head = "cell,backend,oversubscribed,step,tokens,time_s,loss,val_loss," \
        "train_s,loss_smooth,restarts\n"
    for name in names:
        run = data / "cells" / name.replace(" ", "_") / "r1"
        run.mkdir(parents=True)
        (run / "util.csv").write_text("t_s,rank,metric,value\n" + "".join(
            f"{t / 10},0,resident_bytes,{t << 20}\n" for t in range(1, 9)))
    (data / "curves.csv").write_text(head + "".join(
        f"{name},ring,0,{s},{s},{s},{5 - s / 9},,{s},{5 - s / 9},0\n"
        for name in names for s in range(1, 20)))
    (data / "table.csv").write_text("cell,backend,oversubscribed\n" + "".join(
        f"{name},ring,0\n" for name in names))
    for figure in "memory_timeline", "loss_step":
        draw(plots, figure, data, folder)
        said = ["".join(e.itertext()).strip() for e in tree.parse(
            folder / f"{figure}.svg").getroot().iter()
            if e.tag.endswith("text")]
        assert all(f"way {k}" in said for k in range(13)), said
        assert not any("net=" in text for text in said), said
    palette = re.search(r'worker_colour\(i\) = word\("([^"]*)"',
                        (plots / "style.gp").read_text())[1].split()
    svg = (folder / "loss_step.svg").read_text()
    for colour in palette:
        red, green, blue = bytes.fromhex(colour[1:])
        assert re.search(rf"rgb\(\s*{red},\s*{green},\s*{blue}\)", svg), colour


def draws_a_step(plots, folder):
    """breakdown.gp: in a step of 100 ms the GPU computes for 94 ms, is idle for
    6, and is in collectives for 20."""
    data = folder / "step"
    data.mkdir()
    (data / "shares.csv").write_text(
        "cell,backend,workers,oversubscribed,step_s,gpu_compute_share,"
        "gpu_idle_share,gpu_comm_share\nring,ring,2,0,0.1,0.94,0.06,0.2\n")
    draw(plots, "breakdown", data, folder)
    table = folder / "table.txt"
    subprocess.run(["gnuplot", "-e", f"set table '{table}'", "-c",
                    "breakdown.gp", str(data), str(folder / "x.svg")],
                   cwd=plots, check=True, timeout=60)
    bars = [tuple(map(float, line.split()[1:4]))
            for line in table.read_text().splitlines()
            if line.strip() and line[0] != "#"]
    assert bars == [(0, 0, 94), (0, 94, 100), (.42, 0, 20)], bars


def draws_a_pipeline(plots, folder):
    """pipeline.gp of a run: a row for each rank, chunks in the order of layers."""
    data = folder / "pipeline"
    data.mkdir()
    spans = [(name, micro, 10 * i) for i, (name, micro) in enumerate(
        (("forward", 0), ("forward", 1), ("forward", 0), ("forward", 1),
         ("backward", 0), ("backward", 1), ("backward", 0), ("backward", 1)))]
    (data / "trace.json").write_text("".join(
        f'{{"name": "step", "pid": {rank}, "ts": 0, "dur": 90, '
        f'"args": {{"step": 3}}}},\n' + "".join(
            f'{{"name": "{name}", "pid": {rank}, "ts": {at}, "dur": 9, '
            f'"args": {{"micro": {micro}}}}},\n' for name, micro, at in spans)
        for rank in range(2)))
    out = folder / "step.svg"
    subprocess.run(["gnuplot", "-c", "pipeline.gp", str(data), str(out), "3"],
                   cwd=plots, check=True, timeout=60)
    check_svg(out)
    rows = [line.split(",") for line in
            (folder / "step.svg-3.csv").read_text().splitlines()[1:]]
    assert [row[1:5] for row in rows] == [
        [str(rank), name, str(micro), str(chunk)] for rank in range(2)
        for (name, micro, _), chunk in zip(spans, (0, 0, 1, 1, 1, 1, 0, 0))
    ], rows
    said = {"".join(e.itertext()).strip() for e in tree.parse(
        out).getroot().iter() if e.tag.endswith("text")}
    assert {"rank", "backward, odd chunk"} <= said and "stage" not in said, said


def draws_the_gpu(plots, folder):
    """The line of a worker with a GPU is the GPU's share, not the host's: the
    host only waits."""
    drawn = []
    for name, rows in (("host", "{t},0,compute_share,{v}\n"),
                       ("gpu", "{t},0,compute_share,0.05\n"
                               "{t},0,gpu_compute_share,{v}\n")):
        data = folder / name / "run"
        data.mkdir(parents=True)
        (data / "util.csv").write_text("t_s,rank,metric,value\n" + "".join(
            rows.format(t=t / 10, v=.9 + .01 * (t % 3)) for t in range(1, 30)))
        draw(plots, "util_timeline", data, folder)
        drawn.append((folder / "util_timeline.svg").read_text())
    assert drawn[0] == drawn[1]


def main():
    plots = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("gnuplot"):
        print("skipped: no gnuplot")
        sys.exit(77)
    sample = {}
    for line in (plots / "sample" / "figures.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, folder = line.split()
            sample[name] = plots / "sample" / folder
    have = {p.stem for p in plots.glob("*.gp")} - PARTS
    assert have == set(sample), have ^ set(sample)
    with tempfile.TemporaryDirectory(prefix="lockstep-draw-") as folder:
        for name, data in sorted(sample.items()):
            draw(plots, name, data, pathlib.Path(folder))
            print("drawn", name)
        draws_the_gpu(plots, pathlib.Path(folder))
        draws_nvml(plots, pathlib.Path(folder))
        colours_differ_in_grey(plots)
        draws_all_cells(plots, pathlib.Path(folder))
        draws_a_step(plots, pathlib.Path(folder))
        draws_a_pipeline(plots, pathlib.Path(folder))
        draws_servers(plots, sample["server_load"], pathlib.Path(folder))
        draws_of_a_size(plots, sample["throughput"], pathlib.Path(folder))
        draws_one_key(plots, pathlib.Path(folder))
        draws_few_steps(plots, pathlib.Path(folder))
        draws_ranges(plots, plots / "sample" / "paper", pathlib.Path(folder))


main()
