"""Writes DIR/report.html: one file with the answer, tables, figures and settings."""

import functools
import json
import os
import re
import xml.etree.ElementTree as tree

from . import figures, tables
from .answer import answer
from .fair import compare, fairness
from .files import Error, read_text, visible, write_text
from .measures import MEASURES
from .places import HERE
from .runs import SMOOTH

COLUMNS = ("tokens_per_s", "speedup", "step_s", "utilisation_total", "cpu_share_mean",
           "exposed_s_per_step", "wait_s_per_step", "bubble_s_per_step",
           "join_s_per_step", "trained_share", "seconds_to_target",
           "tokens_to_target", "train_loss_nats", "best_val_loss_nats",
           "peak_memory_bytes", "server_peak_memory_bytes", "restarts",
           "gpu_util_share", "gpu_peak_memory_bytes", "gpu_power_w")
LAW = ("bytes_tx_per_worker_step", "law_bytes_tx", "exposed_s_per_step",
       "wait_s_per_step", "law_exchange_s")
PARTED = ("stage_bytes_tx_per_worker_step", "law_stage_bytes_tx", "bubble_s_per_step",
          "slice_bytes_tx_per_worker_step", "law_slice_bytes_tx",
          "piece_bytes_tx_per_worker_step", "law_piece_bytes_tx", "join_s_per_step")
USUAL = {"restarts": 0, "trained_share": 1}  # a column only if some run has another value
for prefix, space in ("", "2000/svg"), ("xlink", "1999/xlink"):
    tree.register_namespace(prefix, f"http://www.w3.org/{space}")
# The elements and attributes of a drawing by gnuplot. Others could run a script or
# load a file.
TAGS = set("svg title desc defs filter feFlood g path use circle rect feComposite text "
           "tspan line stop polygon pattern polyline ellipse clipPath "
           "linearGradient".split())


def _row(study, cell, measures):
    run = study.first(cell)
    return {"name": cell.shown, "run": run,
            "cells": [MEASURES[m].text_of(study.range(cell, m)) for m in measures]}


def _results(study):
    used = [m for m in COLUMNS if study.has(m) and (m not in USUAL or any(
        MEASURES[m].of(r) != USUAL[m] for r in study.runs))]
    rows = [_row(study, cell, used) for cell in study.filled]
    return {"measures": [MEASURES[m] for m in used], "rows": rows}


def _law(study):
    """The rows of cells that have a law of bytes."""
    rows = []
    for cell in study.filled:
        if study.range(cell, "law_bytes_tx").median:
            row = _row(study, cell, LAW)
            counted = study.range(cell, LAW[0]).median
            row["ratio"] = f"{counted / study.range(cell, LAW[1]).median:.4g}" \
                if counted is not None else "-"
            rows.append(row)
    return {"measures": [MEASURES[m] for m in LAW], "rows": rows}


def _parts(study):
    """What stages and slices sent, and how long they waited for it."""
    used = [m for m in PARTED if study.has(m)]
    rows = [_row(study, c, used) for c in study.filled
            if any(study.range(c, m).median is not None for m in used)]
    return {"measures": [MEASURES[m] for m in used], "rows": rows}


def _bubbles(study):
    return {"measures": [MEASURES[m] for m in tables.BUBBLES],
            "rows": [_row(study, c, tables.BUBBLES) for c in tables.staged(study)]}


def drawing(text):
    """The <svg> element of an SVG, written anew: a browser, which reads HTML, may find
    more in its comments than a reader of XML. "" if it has other elements and
    attributes than those that draw."""
    if "<!ENTITY" in text:
        return ""
    try:
        root = tree.fromstring(text)
    except tree.ParseError:
        return ""
    for element in root.iter():
        if str(element.tag).rpartition("}")[2] not in TAGS:
            return ""
        for name, value in element.attrib.items():
            name = name.rpartition("}")[2].lower()
            if name.startswith("on") or name == "style" or \
                    (name == "href" and not value.startswith("#")) or \
                    re.search(r"url\((?!\s*#)", value, re.I):
                return ""
    return tree.tostring(root, encoding="unicode", short_empty_elements=False)


def _svg(study, name):
    """The <svg> element of a drawn figure."""
    path = os.path.join(study.to, "figures", f"{name}.svg")
    svg = drawing(read_text(path, 1 << 26))
    if not svg:
        raise Error(f"{visible(path)}: contains more than a drawing, so the report leaves "
                    "it out")
    return svg


def _objects(run):
    """(title, "key = value" lines) of the parts of run.json."""
    def lines(values):
        return "\n".join(f"{visible(k)} = {visible(json.dumps(v, ensure_ascii=False))}"
                         for k, v in values.items() if not isinstance(v, dict))
    yield "run", lines(run.manifest)
    for name in "machine", "environment", "versions", "data", "model", "workers":
        if isinstance(run.get(name), dict):
            yield name, lines(run.get(name))
    yield "settings", lines(run.settings)


@functools.cache
def template():
    """page.html, compiled, which takes longer than to fill it in."""
    try:
        import jinja2
    except ImportError:
        raise Error("jinja2 is missing, which writes report.html; try: ./install, or "
                    "apt-get install python3-jinja2") from None
    env = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True,
                             undefined=jinja2.StrictUndefined, trim_blocks=True,
                             lstrip_blocks=True)
    return env.get_template("page.html")


def write_report(study, drawn):
    """Writes report.html with the figures that were drawn. Returns the sentences of
    its answer, and lines about figures that it leaves out."""
    svgs, left_out = [], []
    for name in drawn:
        try:
            svgs.append(_svg(study, name))
        except Error as why:
            left_out.append(str(why))
    said = answer(study)
    page = template().render(
        study=study, experiment=study.experiment, answer=said, results=_results(study),
        law=_law(study), parts=_parts(study), bubbles=_bubbles(study),
        fair=fairness(study), verdict=str(compare(study)), figures=svgs, smooth=SMOOTH,
        timed_steps=study.timed_steps(study.filled), words=" ".join(study.words),
        objects=list(_objects(study.runs[0])))
    write_text(os.path.join(study.to, "report.html"), page)
    return said, left_out


def finish(study, log):
    """Makes tables, figures and the report of a study. Returns the text for the
    terminal; log(line) takes what is left out."""
    if study.ini:
        figures.check(study.experiment.figures)
    study.need_runs()
    tables.write_tables(study)
    drawn, failed = figures.draw_all(study)
    said, left_out = write_report(study, drawn)
    for line in failed + left_out:
        log(f"lockstep: {line}")
    parts = [f"\n{study.experiment.name}: {visible(study.experiment.title)}\n",
             tables.text(study)]
    if len(study.runs) > 1:
        parts.append(f"{compare(study)}\n")
    # The answer is last, where a terminal still shows it.
    parts += ["\n".join(map(str, said)) + "\n"] * bool(said)
    parts.append(f"report: {visible(study.to)}/report.html")
    return "\n".join(parts)
