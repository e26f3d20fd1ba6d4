"""What a sentence of the oracle is made of: texts and numbers, and the lines that the
pointer shows on it.
"""

import math
import re

MIB = 1 << 20
# {measure: (what people read, its unit over the measure's or a form)}
LABELS = {
    "tokens_per_s": ("tokens/s", 1), "speedup": ("speed-up", ".2f"),
    "step_s": ("step ms", 1e3), "timed_steps": ("steps timed", 1),
    "utilisation_total": ("utilisation, all workers", "%"),
    "cpu_share_mean": ("CPU share, mean", "%"),
    "computing_s_per_step": ("computing ms a step", 1e3),
    "data_s_per_step": ("data ms a step", 1e3),
    "other_s_per_step": ("other ms a step", 1e3),
    "exposed_s_per_step": ("exposed ms a step", 1e3),
    "wait_s_per_step": ("waiting ms a step", 1e3),
    "bubble_s_per_step": ("waiting for stages, ms a step", 1e3),
    "join_s_per_step": ("waiting for slices or pieces, ms a step", 1e3),
    "trained_share": ("tokens trained on, share", "%"), "tokens": ("tokens", 1),
    "seconds_to_target": ("seconds to target", 1),
    "tokens_to_target": ("1000 tokens to target", 1e-3),
    "train_loss_nats": ("training loss", 1),
    "smooth_loss_nats": ("training loss, least mean of ten steps", 1),
    "best_val_loss_nats": ("validation loss, best", 1),
    "peak_memory_bytes": ("worker, MiB", 1 / MIB),
    "server_peak_memory_bytes": ("server, MiB", 1 / MIB), "restarts": ("restarts", 1),
    "steps_lost": ("steps lost", 1), "seconds_lost": ("seconds lost", 1),
    "gpu_util_share": ("GPU, NVML", "%"), "gpu_peak_memory_bytes": ("GPU MiB", 1 / MIB),
    "gpu_power_w": ("GPU W", 1),
    "bytes_tx_per_worker_step": ("bytes sent by a worker in a step", 1),
    "law_bytes_tx": ("bytes by the law", 1),
    "law_exchange_s": ("exchange by the law, ms", 1e3),
    "stage_bytes_tx_per_worker_step": ("bytes to other stages in a step", 1),
    "law_stage_bytes_tx": ("to other stages by the law", 1),
    "slice_bytes_tx_per_worker_step": ("bytes to other slices in a step", 1),
    "law_slice_bytes_tx": ("to other slices by the law", 1),
    "piece_bytes_tx_per_worker_step": ("bytes for other pieces in a step", 1),
    "law_piece_bytes_tx": ("for other pieces by the law", 1),
    "bubble_share": ("bubble %", 100), "law_bubble_share": ("law %", 100),
    "timetable_bubble_share": ("timetable %", 100), "timetable_step_s": ("timetable ms", 1e3)}


class Number:
    """A number in a sentence. kind: decimals, or "3" significant digits, or "ms", or "4"
    digits and no decimals from 1000 on."""

    def __init__(self, value, kind):
        self.value, self.kind = value, kind

    def is_in(self, text):
        if self.kind == "ms":
            value, decimals = 1000 * self.value, len(text.partition(".")[2])
            want = 0 if not value else 3 if value < 1 else 1 if value < 10 else 0
            return decimals == want and close(text, value, decimals)
        if self.kind == "4" and abs(self.value) >= 1000:
            return "." not in text and close(text, self.value, 0)
        if self.kind == "4":
            digits = 3 - math.floor(math.log10(abs(self.value))) if self.value else 0
            return close(text, self.value, digits)
        if self.kind == "3":
            size = f"{self.value:.2e}"
            return close(text, self.value, 2 - int(size.partition("e")[2]))
        return len(text.partition(".")[2]) == self.kind and \
            close(text, self.value, self.kind)


def close(text, value, decimals):
    return abs(float(text) - value) <= .500001 * 10 ** -decimals


def g3(value):
    return Number(value, "3")


def f(value, decimals):
    return Number(value, decimals)


def ms(value):
    """A time, with its unit."""
    return [Number(value, "ms"), " ms"]


def sentence_is(have, want):
    """want: texts and Numbers."""
    pattern = "".join(re.escape(w) if isinstance(w, str) else
                      r"(-?\d+(?:\.\d+)?(?:e[+-]\d+)?)" for w in want)
    found = re.fullmatch(pattern, have)
    shown = [w if isinstance(w, str) else w.value for w in want]
    assert found, f"have: {have}\nwant: {shown}"
    for text, number in zip(found.groups(), (
            w for w in want if not isinstance(w, str))):
        assert number.is_in(text), \
            f"have: {have}\nwant: {shown}\n{text} is not {number.value}"


def names(list_):
    list_ = list(list_)
    return list_[0] if len(list_) == 1 else \
        f"{', '.join(list_[:-1])} and {list_[-1]}"


def ranged(r, digits):
    """ (least .. most), if they differ."""
    number = g3 if digits == "3" else lambda v: f(v, digits)
    if r[1] is None or not r[1] < r[2]:
        return []
    return [" (", number(r[1]), " .. ", number(r[2]), ")"]


def span(seconds):
    for unit, name in (86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"):
        if seconds >= unit:
            n = int(seconds / unit)
            return f"{n} {name}" + "s" * (n > 1)
    return "0 seconds"


def short(study, cell, cells=None):
    """A cell's name without the words that all of `cells` have."""
    words = [c.name.split() for c in cells or study.cells]
    shared = set(words[0]).intersection(*words) if len(words) > 1 else ()
    return " ".join(w for w in cell.name.split() if w not in shared) or cell.name


class Said(list):
    """A sentence: texts and Numbers. hover: what the pointer shows, a line of texts and
    Numbers each."""

    def __init__(self, parts, hover=()):
        super().__init__(parts)
        self.hover = list(hover)


def people(measure, value):
    """A measure's value as people read it: texts and Numbers."""
    scale = LABELS[measure][1]
    if value is None:
        return ["-"]
    if scale == "%":
        return [Number(100 * value, 0), "%"]
    return [Number(value, 2) if scale == ".2f" else Number(value * scale, "4")]


def ends(study, cell, measure):
    """least .. most, if they differ."""
    _, least, most = study.range(cell, measure)
    if least is None or not least < most:
        return []
    return [*people(measure, least), " .. ", *people(measure, most)]


def hover(study, cells, measures, name=None):
    """A line for each cell that has some of the measures."""
    for cell in cells:
        values = []
        for m in measures:
            if (median := study.range(cell, m)[0]) is not None:
                values += [f", {LABELS[m][0]} ", *people(m, median)]
                if more := ends(study, cell, m):
                    values += [" (", *more, ")"]
        if values:
            values[0] = values[0][2:]
            yield [f"{(name or (lambda c: short(study, c)))(cell)}: ", *values,
                   f"; n={len(cell.runs)}"]
