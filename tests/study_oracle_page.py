"""Checks report.html: the sentences and what the pointer shows on them, every cell of its
tables, and what it says about which cells may be compared.
"""

import html.parser
import re

from study_oracle_answer import answer
from study_oracle_compare import differ
from study_oracle_say import LABELS, Number, ends, names, people, sentence_is, short
from study_oracle_tables import steps_of

RESULTS = """tokens_per_s speedup step_s utilisation_total cpu_share_mean exposed_s_per_step
wait_s_per_step bubble_s_per_step join_s_per_step trained_share seconds_to_target
tokens_to_target train_loss_nats best_val_loss_nats peak_memory_bytes
server_peak_memory_bytes restarts gpu_util_share gpu_peak_memory_bytes
gpu_power_w""".split()
LAW = """bytes_tx_per_worker_step law_bytes_tx exposed_s_per_step wait_s_per_step
law_exchange_s""".split()
PARTS = """stage_bytes_tx_per_worker_step law_stage_bytes_tx bubble_s_per_step
slice_bytes_tx_per_worker_step law_slice_bytes_tx piece_bytes_tx_per_worker_step
law_piece_bytes_tx join_s_per_step""".split()
STAGES = """bubble_share law_bubble_share timetable_bubble_share step_s
timetable_step_s""".split()
USUAL = {"restarts": 0, "trained_share": 1}


class Page(html.parser.HTMLParser):
    """tables: {title above: rows of cells, each a list of lines}. said: (text, what the
    pointer shows, whether it warns) of each paragraph. heads: what the pointer shows."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.said, self.heads, self.rows = {}, [], [], []
        self.title, self.to = "", None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "table":
            self.rows = self.tables[self.title] = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.to = [""]
            self.rows[-1].append(self.to)
            if tag == "th" and "title" in attrs:
                self.heads.append(attrs["title"])
        elif tag == "p":
            self.to = [""]
            self.said.append((self.to, attrs.get("title", ""), attrs.get("class")))
        elif tag == "h2":
            self.to, self.title = [""], ""
        elif tag == "br":
            self.to.append("")

    def handle_endtag(self, tag):
        if tag == "h2":
            self.title = self.to[0]
        if tag in ("td", "th", "p", "h2"):
            self.to = None

    def handle_data(self, data):
        if self.to is not None:
            self.to[-1] = " ".join((self.to[-1] + " " + data).split())


def marked(cell):
    """A cell's name, and what makes its numbers doubtful."""
    run = cell.first
    return " ".join([cell.name] + ["‡"] * run.crowded
                    + [f"slept: pace={run.pace}"] * bool(run.pace)
                    + [f"wrong on purpose: {' '.join(run.mistakes)}"] * bool(run.mistakes))


def used(study, measures):
    """The measures that some run has, but for usual values."""
    return [m for m in measures if any(r.value[m] is not None for r in study.runs)
            and (m not in USUAL or any(r.value[m] != USUAL[m] for r in study.runs))]


def table_is(page, title, heads, rows):
    """rows: (texts of the first columns, then for each measure the median and the
    range)."""
    if not rows:
        assert title not in page.tables, title
        return
    have, *found = page.tables[title]
    assert [" ".join(h) for h in have] == heads, (have, heads)
    assert len(found) == len(rows), (title, found)
    for line, (texts, values) in zip(found, rows):
        assert [c[0] for c in line[:len(texts)]] == texts, (title, line, texts)
        for cell, lines in zip(line[len(texts):], values, strict=True):
            lines = [want for want in lines if want]
            assert len(cell) == len(lines), (title, texts, cell)
            for text, want in zip(cell, lines):
                sentence_is(text, want)


def values(study, cell, measures):
    return [(people(m, study.median(cell, m)), ends(study, cell, m)) for m in measures]


def tables_are(study, page):
    def heads(*first, measures):
        return [*first, *(LABELS[m][0] for m in measures)]
    shown = used(study, RESULTS)
    table_is(page, "Results", heads(
        "cell", "backend", "workers", "servers", "global batch", measures=shown), [
        ([marked(c), c.first.json["backend"], str(c.first.world),
          str(c.first.way["servers"]), str(c.first.batch)], values(study, c, shown))
        for c in study.filled])

    def ratio(cell):
        law, sent = (study.median(cell, m) for m in LAW[1::-1])
        return [Number(sent / law, "4")]
    table_is(page, "Communication, measured and by the law", heads(
        "cell", "backend, transport, links", measures=LAW) + ["bytes, measured / law"], [
        ([marked(c), f"{c.first.json['backend']}, {c.first.json['transport']}"
          + (f", {c.first.net}" if c.first.net else "")],
         values(study, c, LAW) + [(ratio(c),)])
        for c in study.filled if study.median(c, "law_bytes_tx")])
    shown = used(study, PARTS)
    table_is(page, "Between stages, slices and pieces", heads(
        "cell", "mesh, links", measures=shown), [
        ([marked(c), c.first.set["mesh"] + (f", {c.first.net}" if c.first.net else "")],
         values(study, c, shown)) for c in study.filled
        if any(study.median(c, m) is not None for m in shown)])
    table_is(page, "How long stages wait", heads("cell", "stages", measures=STAGES), [
        ([marked(c), str(c.first.way["stages"])], values(study, c, STAGES))
        for c in study.filled if c.first.way["stages"] > 1])


def said_is(study, page):
    """Each sentence, the warnings in a colour, with the numbers that it stands on."""
    want = answer(study)
    at = 1 if study.about.get("question") else 0
    for (have, title, kind), sentence in zip(page.said[at:], want):
        sentence_is(have[0], sentence)
        assert (kind == "warn") == have[0].startswith("Warning: "), have
        lines, wanted = title.splitlines(), getattr(sentence, "hover", [])
        assert len(lines) == len(wanted), (have, lines, wanted)
        for line, parts in zip(lines, wanted):
            sentence_is(line, parts)


# ---- which cells may be compared

def bounds_of(found):
    found = list(found)
    return min(found), max(found)


def trainings(study):
    groups = {}
    for c in study.filled:
        first = next((k for k in groups if not differ(k.first, c.first)), c)
        groups.setdefault(first, []).append(c)
    zeroth = next(iter(groups))
    for first, cells in groups.items():
        if len(cells) > 1:
            yield f"Loss by step: {names([short(study, c) for c in cells])} " \
                f"trained the same thing (global batch {first.first.batch})."
        elif first is not zeroth:
            yield f"Loss by step: {short(study, first)} trained something else; it differs " \
                f"from {short(study, zeroth)} in " \
                f"{', '.join(differ(first.first, zeroth.first))}."


def fairness(study):
    runs = study.runs
    yield from trainings(study)
    apart = [short(study, c) for c in study.filled if c.first.way["apart"]]
    if apart:
        yield f"Training loss: the workers of {names(apart)} have different parameters " \
            "between two exchanges, so each has training losses of its own. Compare " \
            "validation losses at multiples of every=."
    yield "Seconds to a loss: all cells; they have the same model and data." \
        if study.one_task() else \
        "Seconds to a loss: not comparable; cells have different models or data."
    least, most = bounds_of(r.value["tokens"] for r in runs)
    yield f"Last loss: all cells; each trains on {most:.0f} tokens." \
        if least == most else f"Last loss: cells train on {least:.0f} to " \
        f"{most:.0f} tokens, so compare it only between cells with the same number."
    least, most = bounds_of(r.set["eval_batches"] * r.set["batch"] * r.world
                            / r.way["parts"] for r in runs)
    if least < most:
        yield "Validation loss: " + (
            f"cells evaluate {least:.0f} to {most:.0f} sequences" if least else
            "some cells evaluate all of the validation text, others at most "
            f"{most:.0f} sequences of it") + ", so compare it only between cells that " \
            "evaluate the same number (eval_batches= counts the batches of one worker)."
    least, most = bounds_of(r.set["batch"] for r in runs)
    yield f"Tokens/s and memory: all cells; batch= is {most:.0f} sequences." \
        if least == most else f"Tokens/s and memory: batch= is {least:.0f} to " \
        f"{most:.0f} sequences, and this alone changes both numbers."


def page_is(study):
    text = (study.folder / "report.html").read_text()
    page = Page(text)
    assert f"the time of the median step of {steps_of(study.filled)}, without" in text
    assert page.heads and all(len(h) > 10 for h in page.heads), page.heads
    said_is(study, page)
    tables_are(study, page)
    paragraphs = [have[0] for have, _, _ in page.said]
    if len(study.runs) > 1:
        for want in (found := list(fairness(study))):
            assert want in paragraphs, (want, paragraphs)
        kinds = "Loss by step:|Training loss:|Seconds to a loss:|Last loss:|Validation " \
            "loss:|Tokens/s and memory:"
        assert sum(bool(re.match(kinds, p)) for p in paragraphs) == len(found), paragraphs
