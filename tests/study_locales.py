"""Tests that lockstep report writes and says the same in every locale: German with commas
and Latin-1, Turkish, C, and without any. A cell's name is not ASCII.

    study_locales.py LOCKSTEP       exit status 77 if there are no sources of locales
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import made
from lockstep import figures

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
LOCALES = (("de_DE", "ISO-8859-1"), ("de_DE", "UTF-8"), ("tr_TR", "ISO-8859-9"))
NAMES = "größe", "ışık İ", "plain"
GPU = [(t / 2, "0", metric, value) for t in range(1, 13) for metric, value in (
    ("gpu_util_share", .5), ("gpu_memory_bytes", 1e9), ("gpu_power_w", 200))]


def locales(folder):
    """Those that this machine can make."""
    found = ["C"]
    for name, charset in LOCALES:
        done = subprocess.run(["localedef", "-i", name, "-f", charset,
                               str(folder / f"{name}.{charset}")], check=False,
                              capture_output=True, timeout=120)
        if (folder / f"{name}.{charset}").exists():
            found.append(f"{name}.{charset}")
        else:
            print("skipped:", name, charset, done.stderr[-200:])
    return found


def kept(out):
    """{file: contents} of all that a report writes."""
    files = [p for p in out.rglob("*") if p.is_file() and "cells" not in p.parts]
    return {str(p.relative_to(out)): p.read_bytes() for p in files}


def study(folder):
    """A study that every figure can show."""
    def words(cell, i, k):
        server, world = cell.settings.get("sync") == "dps", 1 + (i > 2)
        return {"backend": "dps" if server else "ring", "servers": 2 * server,
                "world": world, "net": cell.settings["net"], "over": i == 4,
                "lags": [0, 1, 1, 2], "val": lambda s: 4 - s / 50 + i / 9,
                "loss": lambda s: 2.5 + i / 100 + (3 + i) / s, "exchange_s": .01 * (1 + i),
                "step_us": 20000 + 1300 * i + 10 * k,
                "samples": made.usual_samples(world, 2 * server) + GPU}
    names = "".join(f"[cell {name}]\nseed = {i}\n" for i, name in enumerate(NAMES))
    out = made.study(folder / "größe", words, 2, "baseline = plain net=1gbit\ntarget_loss = 3.5\n"
                     f"figures = {' '.join(n for n, _ in figures.names())}\n",
                     f"[matrix]\nnet = 100mbit, 1gbit\n{names}[cell dps]\nsync = dps\n")
    return out


def main():
    if not pathlib.Path("/usr/share/i18n/locales/de_DE").exists():
        print("skipped: no sources of locales; try: apt-get install locales")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="lockstep-locales-") as name:
        folder = pathlib.Path(name)
        out, seen = study(folder), {}
        for locale in locales(folder):
            shutil.rmtree(out / "figures", ignore_errors=True)
            done = subprocess.run(
                [LOCKSTEP, "report", str(out)], capture_output=True, timeout=280, env={
                    **os.environ, "LC_ALL": locale, "LOCPATH": str(folder),
                    "PYTHONUTF8": "0"})
            assert done.returncode == 0, (locale, done.stderr)
            charset = locale.partition(".")[2] or "UTF-8"
            for stream in "stdout", "stderr":
                text = getattr(done, stream).decode(charset)
                plain = text.encode(charset, "replace").decode(charset)
                known = seen.setdefault(stream, text).encode(charset, "replace")
                assert known.decode(charset) == plain, (locale, stream, known, text)
            for file, contents in kept(out).items():
                assert seen.setdefault(file, contents) == contents, (locale, file)
        assert "größe net=100mbit" in seen["table.txt"].decode()
        drawn = {f for f in seen if f.endswith(".svg")}
        lacks = {n for n, _ in figures.names()} - {pathlib.Path(f).stem for f in drawn}
        assert lacks == {"law", "size_sweep", "scale", "pipeline", "loss"}, lacks
        # the locale is there, and its comma is decimal
        done = subprocess.run(["gnuplot", "-e", "set decimalsign locale; print "
                               "gprintf('%.1f', 0.5)"], capture_output=True, text=True,
                              timeout=60, check=True, env={
                                  **os.environ, "LC_ALL": "de_DE.UTF-8",
                                  "LOCPATH": str(folder)})
        assert "0,5" in done.stderr, done
    print(f"ok: {len(drawn)} figures")


main()
