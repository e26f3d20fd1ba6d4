"""Puts a mistake in a copy of study/lockstep, one at a time, and checks that
tests/study_oracle.py finds it.

    study_mutants.py LOCKSTEP [KEPT]

KEPT is the folder of study_oracle.py; without it, that test runs first. A mistake
replaces a text, which must be there once: if the package changes, say it anew here.
One mistake in EVERY is put in; all of them if LOCKSTEP_LONG=1.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import study_oracle
from study_oracle_runs import Study

BEGIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); " \
        "from lockstep.main import main; sys.exit(main())"

EVERY = 1 if os.environ.get("LOCKSTEP_LONG") == "1" else 8

# (a study that shows it, the file, the right text, the wrong one)
MISTAKES = [
    # the median of an even number; the mean instead of the median
    ("copies/target", "study.py", "statistics.median(v)", "statistics.median_high(v)"),
    ("copies/ties", "study.py", "statistics.median(v)", "sum(v) / len(v)"),
    # least for most, and the tie of cells by their medians
    ("copies/ties", "study.py", "min(v), max(v), len(v))", "min(v), min(v), len(v))"),
    ("copies/ties", "study.py",
     "return self.least <= other.most and other.least <= self.most",
     "return abs(self.median - other.median) < .1 * other.median"),
    # ranges of a ratio from other pairs; a ratio upside down
    ("copies/ties", "study.py", "if r.round == b.round]", "if b.round == 1]"),
    ("copies/ties", "study.py", "found.median = mine / its", "found.median = its / mine"),
    # a repeat left out, and the first repeat for all
    ("copies/ties", "study.py", "in range(1, self.experiment.repeat + 1)",
     "in range(1, self.experiment.repeat)"),
    ("copies/promise", "study.py", "[r.sent(verb) or 0 for r in self.of(cell)]",
     "[r.sent(verb) or 0 for r in self.of(cell)[:1]]"),
    ("copies/stages", "study.py", "for r in self.of(cell)]).median\n\n    def sent",
     "for r in self.of(cell)[:1]]).median\n\n    def sent"),
    ("copies/ties", "study.py", "for r in self.of(base) if r.round == run.round",
     "for r in self.of(base)"),
    # a stopped run that compare does not name
    ("copies/missing", "fair.py", "for r in study.unfinished]",
     "for r in study.unfinished[1:]]"),
    # the target rounded down
    ("copies/ties", "study.py", "math.ceil(round(100", "math.floor(round(100"),
    # exposed for wait, and for slowed
    ("copies/ties", "measures.py", 'return _of_step(run, "wait")',
     'return _of_step(run, "exposed")'),
    ("copies/ties", "runs.py", '"backward", "compress", "update", "slowed")',
     '"backward", "compress", "update")'),
    ("copies/ties", "runs.py", '"backward", "compress", "update", "slowed")',
     '"backward", "update", "slowed")'),
    ("copies/ties", "runs.py", 'WHOLE_RUN = ("checkpoint", "evaluate")',
     'WHOLE_RUN = ("checkpoint",)'),
    # tokens of one worker, those that were read and not trained on, and bytes of all
    ("copies/ties", "measures.py", "trained / run.steps / step if",
     "trained / run.world / run.steps / step if"),
    ("copies/dropped", "measures.py", "trained / run.steps / step if",
     "run.context * run.global_batch / step if"),
    ("copies/ties", "measures.py", "/ steps / run.world", "/ steps"),
    # one worker less in a mean; a rank's loss for all
    ("copies/ties", "measures.py", "total / run.world", "total / (run.world + 1)"),
    ("copies/ties", "runs.py", 'of("loss"), of("val_loss")',
     'rows[0].get("loss"), of("val_loss")'),
    # one step less in the smoothed loss; a step too late; the last of equal steps
    ("copies/ties", "runs.py", "SMOOTH = 10", "SMOOTH = 9"),
    ("copies/ties", "runs.py", "p.smooth <= target", "p.smooth < target - .01"),
    ("copies/ties", "runs.py", 'train_s += (of("t_step_us") or 0) * 1e-6',
     'train_s = of("time_s", most)'),
    # a round that begins a step late; the longer of two middle steps; the mean; steps
    # for rounds
    ("copies/apart", "runs.py", "[(step - 1) // self.every]", "[step // self.every]"),
    ("copies/ties", "runs.py", "statistics.median(times)", "statistics.median_high(times)"),
    ("copies/ties", "runs.py", "statistics.median(times)", "sum(times) / len(times)"),
    ("copies/apart", "runs.py", "min(map(len, self._times), default=None)",
     "len(self.curve)"),
    # a loss that is reached by the mean of fewer steps
    ("copies/ties", "runs.py", "if len(last) == SMOOTH and None not in last:", "if True:"),
    ("copies/promise", "runs.py", "len(medians) / sum(1 / m for m in medians)",
     "sum(medians) / len(medians)"),
    # the peak of worker 0, of the least rank, of servers among the workers
    ("copies/ties", "runs.py", 'self.samples.get("worker_bytes")])', "None])"),
    ("copies/promise", "runs.py", "if not rank.isdecimal():", "if False:"),
    # a unit by 1000, or by 1024
    ("copies/ties", "tables.py", "MEASURES[measure].scale if scale is None else scale",
     "1 if scale is None else scale"),
    ("copies/ties", "measures.py", "MIB = 1048576.0", "MIB = 1e6"),
    # workers swapped
    ("copies/ties", "tables.py", '"utilisation": study.worker_share(cell, worker),',
     '"utilisation": study.worker_share(cell, study.first(cell).world - 1 - worker),'),
    # x for y; a file of before that stays; a row that is left out
    ("copies/shaped", "tables.py", '"x": study.value(cell, x)', '"x": study.value(cell, y)'),
    ("copies/ties", "tables.py", "            remove(path)\n", "            pass\n"),
    ("copies/ties", "tables.py", "for p in run.curve:", "for p in run.curve[1:]:"),
    # sentences: the slowest is first; link for wait; the wrong next; a wrong price
    ("copies/models", "answer.py", "(1 if self.timed else -1) *", "1 *"),
    ("copies/shaped", "answer.py", "key=lambda h: -h[0])", "key=lambda h: h[0])"),
    ("copies/shaped", "answer.py", "self.spent(c, HELD_UP)) for c in (cell, best))",
     "self.spent(c, HELD_UP)) for c in (cell, cell))"),
    ("copies/stages", "answer.py", '("join_s_per_step", "it',
     '("exposed_s_per_step", "it'),
    ("copies/stages", "runs.py", 'zip(("bubble", "join"), parts)',
     'zip(("join", "bubble"), parts)'),
    ("copies/stages", "measures.py", '_sent(run, "slice_tx")', '_sent(run, "stage_tx")'),
    # pieces: their wait is none of theirs, of other bytes, by another law
    ("copies/pieces", "measures.py", '_parts(run, "slices"), _parts(run, "pieces"))',
     '_parts(run, "slices"), 1)'),
    ("copies/pieces", "measures.py", '_sent(run, "piece_tx")', '_sent(run, "slice_tx")'),
    ("copies/pieces", "measures.py", 'run.number(f"law.{of}_tx")',
     'run.number("law.slice_tx")'),
    ("copies/pieces", "prepare.py", "end, end + size, key[0],", "0, size, key[0],"),
    # what works longer, and what was dropped
    ("copies/stages", "answer.py", "v - first.get(what, 0), v, what", "v, v, what"),
    ("copies/dropped", "remarks.py", "share < WHOLE]", "share < .1]"),
    ("copies/dropped", "answer.py", "first_share / share > max(", "share > 9 * max("),
    ("copies/target", "answer.py",
     "[c for c in self.ranked if c not in self.tied]", "self.ranked[1:]"),
    ("copies/level", "answer.py", "self.behind[-1]", "self.ranked[-1]"),
    ("copies/ties", "answer.py", "for f in (min, max)]", "for f in (min, min)]"),
    # a superlative of one cell, where others cannot be told apart from it
    ("copies/ties", "answer.py", "self.place(self.level(cell, self.ranked), cell,",
     "self.place([cell], cell,"),
    ("copies/ties", "answer.py", "level = self.level(second, self.behind)",
     "level = [second]"),
    ("copies/ties", "answer.py", "if ends[1] in level[0]:", "if False:"),
    ("copies/losses", "answer.py", "[self.level(c, cells, measure) for c in ends]",
     "[[c] for c in ends]"),
    # over all choices: a way that is not the same by its name
    ("copies/shaped", "answer.py", "            choosing.add(a)\n", "            pass\n"),
    ("copies/target", "answer.py", "best = sorted(set.intersection(*(",
     "best = sorted(set.union(*("),
    # what may not be ranked: other batches; cells of the same settings
    ("copies/alone", "answer.py", "(run.net, run.world, run.global_batch)",
     "(run.net, run.world, 1)"),
    ("copies/alone", "answer.py", "if alone and len(study.filled) > 1:", "if False:"),
    ("copies/unshaped", "study.py", "if first is not cell:", "if False:"),
    ("copies/promise", "same.py", "around(run), settings,", "around(run),"),
    ("copies/promise", "study.py", "run.repeat += e.repeat *", "run.repeat += 0 *"),
    ("copies/unshaped", "study.py", "base and (base.into or base)", "base"),
    # links that were not had; a way that no name tells
    ("copies/unshaped", "study.py", 'got.get(w.partition("=")[0], w.replace("=?", "="))',
     "w"),
    ("copies/ties", "tables.py", "*(r.backend for r in runs)",
     '*("ring" for r in runs)'),
    ("copies/ties", "page.html", "<td>{{ row.run.backend }}</td>", "<td>ring</td>"),
    ("copies/target", "answer.py", "several = len(set(ways.values())) > 1",
     "several = False"),
    # runs that were not in turns, or that were
    ("copies/late", "fair.py", "begin > last and (", "False and ("),
    ("copies/later", "answer.py", "dict.fromkeys(self.cells + bases)", "self.cells"),
    ("copies/late", "fair.py", "once &= len(", "once &= True or len("),
    ("copies/late", "answer.py", '(86400, "day")', '(8640, "day")'),
    ("copies/paused", "fair.py", "PAUSE = 600", "PAUSE = 6000"),
    ("copies/paused", "fair.py", "+ (run[\"seconds\"] or 0)", "+ 0"),
    ("copies/tokens", "answer.py", "tokens > 1.05 and", "tokens > 5 and"),
    # what must be said is not, or is said of too many
    ("copies/few", "remarks.py", "FEW = 10", "FEW = 5"),
    ("copies/hosts", "remarks.py", "run.hosts * (run.number", "1 * (run.number"),
    ("copies/hosts", "remarks.py", "(number(run.setting(\"server_threads\")) or 1)", "1"),
    ("copies/promise", "remarks.py", "MUCH_TAKEN + _expected(run)", "MUCH_TAKEN"),
    ("copies/missing", "remarks.py", "or 0) > MANY_SWITCHES", "or 0) > 0"),
    # the cores of servers; a cause where other programs ran; ties that are no pairs
    ("copies/ties", "remarks.py", '+ run.samples["server_cores"]', "+ run.servers"),
    ("copies/ties", "answer.py", "for a in ranges for b in ranges)", "for a in ranges for b in ())"),
    ("copies/shaped", "answer.py", "if any(map(is_disturbed, self", "if any(map(bool, self"),
    ("copies/ties", "answer.py", "self.study.of(cell) + self.study.of(best))", "[])"),
    ("copies/missing", "remarks.py", "study.unfinished + [r for", "[r for"),
    ("copies/ties", "remarks.py", "max(3 * usual, 0.1 * middle)", "30 * usual"),
    ("copies/missing", "remarks.py", "if not study.first(c).pace and",
     "if True and"),
    ("copies/unshaped", "runs.py", 'for key in "net",', 'for key in'),
    ("copies/losses", "runs.py", '"net", "transport", "device"', '"net", "device"'),
    ("copies/losses", "runs.py", 'self.get("own_cores") is False', "False"),
    ("copies/shaped", "answer.py", "if len(study.filled) > 1 and not study.repeats:", "if False:"),
    # figures: the least as the median, seconds for milliseconds, another step
    ("copies/drawn", "prepare.py", "r.median * scale, r.least",
     "r.least * scale, r.least"),
    ("copies/drawn", "prepare.py", "ms = {k: 1e3 * step *", "ms = {k: step *"),
    ("copies/drawn", "prepare_lines.py", '_curves(study, "step", "loss")',
     '_curves(study, "step", "smooth")'),
    ("copies/ways", "prepare_lines.py", 'ways = [colour_of(r["backend"]) for r in of_name]',
     "ways = [worker_colour(i) for r in of_name]"),
    ("copies/ways", "prepare.py", "1e-6 * study.sent(cell, v)",
     "1e-6 * (study.first(cell).sent(v) or 0)"),
    ("copies/ways", "study.py", "[r.part_bytes(part) for r in self.of(cell)]",
     "[r.part_bytes(part) for r in self.of(cell)[:1]]"),
    ("copies/scaled", "prepare_lines.py", "batch * (1 if p == 1 else run.world)", "batch"),
    ("copies/scaled", "prepare_lines.py", 'study.ratio(c, base, "tokens_per_s")',
     'study.ratio(c, alone[0], "tokens_per_s")'),
    ("copies/scaled", "prepare_lines.py", "if run.world > 1:", "if run.world > 2:"),
    ("copies/shaped", "prepare_lines.py", 'ms("exposed_s_per_step", "wait_s_per_step")',
     'ms("exposed_s_per_step")'),
    ("copies/shaped", "prepare_lines.py", 'rate[2] == "m"', 'rate[2] == "g"'),
    ("copies/shaped", "prepare_lines.py", '"row": ys.index(r["y"])', '"row": xs.index(r["x"])'),
    ("copies/unshaped", "prepare_lines.py", "losses(study.baseline(cell))",
     "losses(study.cells[cell.baseline])"),
    ("copies/unshaped", "prepare_lines.py", "for s in steps), max)", "for s in steps), min)"),
    ("copies/drawn", "prepare.py", "for lag in r.column", "for r in [study.first(c)] for lag in r.column"),
    ("copies/drawn", "prepare.py", "            for rank, values in server_loads(run)",
     "            for rank, values in server_loads(study.first(cell))"),
    ("copies/drawn", "prepare.py", "colour, percent = worker_colour(0 if many else w), 100 * share",
     "colour, percent = worker_colour(0 if many else w), share"),
    ("copies/drawn", "prepare_lines.py", "points = [(t, unit * v) for t, v in samples[rank][m]]",
     "points = [(t, v) for t, v in samples[rank][m]]"),
    # report.html: another digit, another cell's number, a range, a ratio, a column
    ("copies/ties", "measures.py", "else '.4g')", "else '.2g')"),
    ("copies/ties", "measures.py", 'f"{self.text(found.least)} .. {self.text(found.most)}"',
     'f"{self.text(found.least)} .. {self.text(found.median)}"'),
    ("copies/ties", "page.html", "{{ row.run.global_batch }}", "{{ row.run.world }}"),
    ("copies/ties", "page.py", "counted / study.range(cell, LAW[1])",
     "study.range(cell, LAW[1]).median / study.range(cell, LAW[0])"),
    ("copies/ties", "page.py", "study.range(cell, m)) for m in", "study.range("
     "study.filled[0], m)) for m in"),
    ("copies/stages", "page.py", "for c in tables.staged(study)]",
     "for c in tables.staged(study)[:1]]"),
    ("copies/pieces", "page.py", '"law_slice_bytes_tx",\n          "piece',
     '"law_bytes_tx",\n          "piece'),
    ("copies/ties", "page.py", '"trained_share": 1}', '"trained_share": None}'),
    ("copies/missing", "page.html", '{%- if row.run.pace %}', '{%- if false %}'),
    # hovers: another measure, no range, of one cell only
    ("copies/ties", "answer.py", "self.numbers(\n            \"peak_memory_bytes\", ",
     "self.numbers(\n            \"tokens\", "),
    ("copies/ties", "remarks.py", '+ f" ({ends})" * bool(ends))', ")"),
    ("copies/ties", "answer.py", "numbers_of(self.study, self.cells,",
     "numbers_of(self.study, self.cells[:1],"),
    ("copies/dropped", "remarks.py", 'numbers_of(study, lost, "smooth_loss_nats")',
     'numbers_of(study, lost, "train_loss_nats")'),
    ("copies/some", "remarks.py", 'c.short, *_load(study.first(c)))',
     'c.short, *_load(study.first(c))[::-1])'),
    ("copies/few", "remarks.py", 'numbers_of(study, cells, "timed_steps")',
     'numbers_of(study, cells, "tokens")'),
    ("copies/late", "answer.py", 'r.text("started") for r in self.study.of(c)',
     'r.text("started") for r in self.study.of(c)[:1]'),
    # what may be compared; the target of different models
    ("copies/models", "study.py", "        if not self.one_task:\n            return None\n",
     ""),
    ("copies/models", "fair.py", "elif group is not groups[0]:", "elif False:"),
    ("copies/few", "fair.py", 'MEASURES["tokens"].of(r) for r in runs',
     'MEASURES["tokens"].of(r) for r in runs[:1]'),
    # compare: too few steps, too much allowed, another reference
    ("copies/losses", "fair.py", "FIRST = 20", "FIRST = 4"),
    ("copies/losses", "fair.py", "WITHIN = 2e-3", "WITHIN = 2e-2"),
    ("copies/rounding", "fair.py", "WITHIN_16 = 3e-2", "WITHIN_16 = 2e-3"),
    ("copies/rounding", "fair.py", "WITHIN_16 = 3e-2", "WITHIN_16 = 5e-2"),
    ("copies/rounding", "fair.py", '"precision", "wire", "tp_wire"', '"precision", "tp_wire"'),
    ("copies/rounding", "fair.py", '"precision", "wire", "tp_wire"', '"wire", "tp_wire"'),
    ("copies/rounding", "fair.py", "pairs[:odd or FIRST]", "pairs[:FIRST]"),
    ("copies/losses", "fair.py", "abs(x - y) / abs(x) if x", "abs(x - y) if x"),
    ("copies/apart", "fair.py", "x.step % a.every == 0", "x.step % a.every == 1"),
]


def copy_of(tree):
    """A source tree with study/ of its own."""
    shutil.copytree(study_oracle.SOURCE / "study", tree / "study",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for name in "CMakeLists.txt", "core", "plots":
        (tree / name).symlink_to(study_oracle.SOURCE / name)
    return tree / "study" / "lockstep"


def python():
    chosen, debian = os.environ.get("LOCKSTEP_PYTHON"), "/usr/bin/python3"
    return chosen or (debian if os.access(debian, os.X_OK) else sys.executable)


def is_found(study, command):
    """Whether the oracle finds something wrong. It must be in what the package
    writes, not that it ends with an error."""
    try:
        study_oracle.study_is(study, command)
    except AssertionError as why:
        return "Traceback" not in str(why)
    return False


def put(path, text):
    """Replaces a module. Its time is another one, so no older bytecode is taken for it."""
    later = path.stat().st_mtime + 2
    path.write_text(text)
    os.utime(path, (later, later))


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    os.environ["LOCKSTEP_PROGRAM"] = program
    with tempfile.TemporaryDirectory(prefix="lockstep-mutants-") as name:
        if len(sys.argv) > 2:
            kept = pathlib.Path(sys.argv[2]).resolve() / "kept"
        else:
            kept = pathlib.Path(name) / "kept"
            subprocess.run([sys.executable, study_oracle.__file__, program, name],
                           check=True)
        package = copy_of(pathlib.Path(name) / "tree")
        command = [python(), "-I", "-c", BEGIN, str(package.parent)]
        studies, missed = {}, []
        for _, file, right, _ in MISTAKES:
            count = (package / file).read_text().count(right)
            assert count == 1, f"{file} has {count} times, instead of once: {right}"
        for where, file, right, wrong in MISTAKES[::EVERY]:
            if where not in studies:
                studies[where] = Study(kept / where)
                study_oracle.study_is(studies[where], command)
            text = (package / file).read_text()
            put(package / file, text.replace(right, wrong))
            if not is_found(studies[where], command):
                missed.append((where, file, wrong))
            put(package / file, text)
        for study in studies.values():
            study_oracle.study_is(study, command)
    assert not missed, "the oracle did not see:\n" + "\n".join(map(str, missed))
    print(f"ok: {len(MISTAKES[::EVERY])} of {len(MISTAKES)} mistakes put in, all found")


if __name__ == "__main__":
    main()
