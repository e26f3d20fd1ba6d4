"""Puts a mistake in a copy of study/lockstep, one at a time, and checks that
tests/study_oracle.py finds it.

    study_mutants.py LOCKSTEP [KEPT]

KEPT is the folder of study_oracle.py; without it, that test runs first. A mistake
replaces a text, which must be there once: if the package changes, say it anew here.
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
    # the target rounded down
    ("copies/ties", "study.py", "math.ceil(round(100", "math.floor(round(100"),
    # exposed for wait, and for slowed
    ("copies/ties", "measures.py", 'return _of_step(run, "wait")',
     'return _of_step(run, "exposed")'),
    ("copies/ties", "runs.py", '"forward", "backward", "update", "slowed")',
     '"forward", "backward", "update")'),
    ("copies/ties", "runs.py", 'WHOLE_RUN = ("checkpoint", "evaluate")',
     'WHOLE_RUN = ("checkpoint",)'),
    # tokens of one worker, and bytes of all
    ("copies/ties", "measures.py", "run.context * run.global_batch / step",
     "run.context * run.global_batch / run.world / step"),
    ("copies/ties", "measures.py", "/ run.steps / run.world", "/ run.steps"),
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
    ("copies/ties", "tables.py", "_number(study.range(cell, \"step_s\").median, 1, 1e3)",
     "_number(study.range(cell, \"step_s\").median, 1, 1e6)"),
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
    ("copies/shaped", "answer.py", "for c in (cell, best))",
     "for c in (cell, cell))"),
    ("copies/stages", "answer.py", '("join_s_per_step", "it',
     '("exposed_s_per_step", "it'),
    ("copies/stages", "runs.py", 'zip(("bubble", "join"), parts)',
     'zip(("join", "bubble"), parts)'),
    ("copies/stages", "measures.py", '_sent(run, "slice_tx")', '_sent(run, "stage_tx")'),
    ("copies/target", "answer.py",
     "[c for c in self.ranked if c not in self.tied]", "self.ranked[1:]"),
    ("copies/ties", "answer.py", "self.behind[-1]", "self.ranked[-1]"),
    ("copies/ties", "answer.py", "for f in (min, max)]", "for f in (min, min)]"),
    # a superlative of one cell, where others cannot be told apart from it
    ("copies/ties", "answer.py", "self.place(self.level(cell, self.ranked), cell,",
     "self.place([cell], cell,"),
    ("copies/ties", "answer.py", "level = self.level(second, self.behind)",
     "level = [second]"),
    ("copies/ties", "answer.py", "if ends[1] in level[0]:", "if False:"),
    ("copies/losses", "answer.py", "[self.level(c, cells, measure) for c in ends]",
     "[[c] for c in ends]"),
    # what may not be ranked: other batches; cells of the same settings
    ("copies/alone", "answer.py", "(run.net, run.world, run.global_batch)",
     "(run.net, run.world, 1)"),
    ("copies/alone", "answer.py", "if alone and len(study.filled) > 1:", "if False:"),
    ("copies/unshaped", "study.py", "if first is not cell:", "if False:"),
    ("copies/promise", "study.py", "around(run), settings,", "around(run),"),
    ("copies/promise", "study.py", "run.repeat += e.repeat *", "run.repeat += 0 *"),
    ("copies/unshaped", "study.py", "base and (base.into or base)", "base"),
    # links that were not had; a way that no name tells
    ("copies/unshaped", "study.py", 'got.get(w.partition("=")[0], w.replace("=?", "="))',
     "w"),
    ("copies/ties", "tables.py", "[cell.shown, run.backend, str(run.world)",
     '[cell.shown, "ring", str(run.world)'),
    ("copies/ties", "report.html", "<td>{{ row.run.backend }}</td>", "<td>ring</td>"),
    ("copies/target", "answer.py", "several = len(set(ways.values())) > 1",
     "several = False"),
    # runs that were not in turns, or that were
    ("copies/late", "fair.py", "begin > last and (", "False and ("),
    ("copies/late", "fair.py", "once &= len(", "once &= True or len("),
    ("copies/late", "answer.py", '(86400, "day")', '(8640, "day")'),
    ("copies/paused", "fair.py", "PAUSE = 600", "PAUSE = 6000"),
    ("copies/paused", "fair.py", "+ (run[\"seconds\"] or 0)", "+ 0"),
    ("copies/tokens", "answer.py", "tokens > 1.05 and", "tokens > 5 and"),
    # what must be said is not, or is said of too many
    ("copies/few", "answer.py", "FEW = 10", "FEW = 5"),
    ("copies/hosts", "answer.py", "cores = run.hosts *", "cores = 1 *"),
    ("copies/hosts", "answer.py", "(number(run.setting(\"server_threads\")) or 1)", "1"),
    ("copies/ties", "answer.py", "MUCH_TAKEN + _expected(r)", "MUCH_TAKEN"),
    ("copies/missing", "answer.py", "> MANY_SWITCHES]", "> 0]"),
    ("copies/missing", "answer.py", "study.unfinished + [r for", "[r for"),
    ("copies/ties", "answer.py", "max(3 * usual, 0.1 * middle)", "30 * usual"),
    ("copies/missing", "answer.py", "if not study.first(c).pace and",
     "if True and"),
    ("copies/unshaped", "runs.py", 'for key in "net",', 'for key in'),
    ("copies/shaped", "answer.py", "if found and not study.repeats:", "if False:"),
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
    # compare: too few steps, too much allowed, another reference
    ("copies/losses", "fair.py", "FIRST = 20", "FIRST = 4"),
    ("copies/losses", "fair.py", "WITHIN = 2e-3", "WITHIN = 2e-2"),
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
        command = [python(), "-I", "-B", "-c", BEGIN, str(package.parent)]
        studies, missed = {}, []
        for where, file, right, wrong in MISTAKES:
            if where not in studies:
                studies[where] = Study(kept / where)
                study_oracle.study_is(studies[where], command)
            text = (package / file).read_text()
            assert text.count(right) == 1, \
                f"{file} has {text.count(right)} times, instead of once: {right}"
            (package / file).write_text(text.replace(right, wrong))
            if not is_found(studies[where], command):
                missed.append((where, file, wrong))
            (package / file).write_text(text)
        for study in studies.values():
            study_oracle.study_is(study, command)
    assert not missed, "the oracle did not see:\n" + "\n".join(map(str, missed))
    print(f"ok: {len(MISTAKES)} mistakes, all found")


if __name__ == "__main__":
    main()
