"""labs_grader.py - files that are made to hurt the grader: they name places outside its
vectors, cannot be read in any time, or give a reason of several lines. labs_cheats.py
tries them.
"""

import functools
import pathlib
import tempfile

from labs import TOP, at_once, run_job
from grading import build, lab


# {name: (text of lab 5's reference, what takes its place, what the test says)}
OUTSIDE = {
    "sums_no_bucket": ("s->sum(l, s, b)", "s->sum(l, s, b - 1000)", "sums bucket -1000; there"),
    "sums_far_buckets": ("s->sum(l, s, b)", "s->sum(l, s, b + (1 << 20))", "sums bucket 1048576"),
    "cuts_before_the_vector": ("(struct bucket){left, len};",
                               "(struct bucket){left - 1000000, len};", "elements at 1844674"),
    "cuts_behind_the_vector": ("(struct bucket){left, len};",
                               "(struct bucket){left, len + 1000000};", "elements at 0"),
}


def judge_outside(out, name):
    """The grader uses no place that a file names before it has looked at it."""
    right, wrong, says = OUTSIDE[name]
    text = (TOP / "labs/05-overlap/reference.c").read_text()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "build").symlink_to(pathlib.Path(out).resolve())
        (folder / "overlap.c").write_text(text.replace(right, wrong))
        said = run_job(TOP / "labs/grade", "5", folder / "overlap.c", "--out", folder,
                       "--test", "sums")[1]
    return [] if right in text and says in said else [f"{name}: {said}"]


# What would take hours to read, or more memory than there is; {name: (text behind lab 4's
# skeleton, what the refusal says)}.
ENDLESS = {
    "goes_on_in_the_next_line": ("\\\n" * 200000, None),
    "opens_unions": ("union{" * 60000, "more than"),
    "defines_types": ("typedef " * 60000, "more than"),
    "expands": ("#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(A(A(A(x))))))\n"
                "B(ab) B(cd) B(ef)\n", "becomes longer than"),
}


def judge_lines(out):
    """A reason that a file gives cannot pass for another line of a table."""
    text = (TOP / "labs/04-ring/skeleton.c").read_text()
    at = text.index("{", text.index("int lab_exchange(")) + 1
    text = f'{text[:at]} return lab_missing(l, 0, "it\\nEve   70");{text[at:]}'
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "build").symlink_to(pathlib.Path(out).resolve())
        (folder / "in/Mal").mkdir(parents=True)
        (folder / "in/Mal/ring.c").write_text(text)
        said = run_job(TOP / "labs/grade", "4", "--out", folder, "--batch", folder / "in",
                       "--csv", folder / "x.csv")[1]
    return [] if said.count("\n") == 1 and "it\\nEve" in said else [f"lines: {said}"]


def judge_endless(out, name):
    """A file that is written to be read for ever is refused within seconds."""
    more, says = ENDLESS[name]
    its = lab.find("4")
    limit, build.rules.PROCESSOR_S = build.rules.PROCESSOR_S, 1
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "endless.c"
        path.write_text((its.folder / "skeleton.c").read_text() + more)
        said = None
        try:
            build.Builder(its, out).take(path, pathlib.Path(folder), build.FLAGS)
        except build.Refused as why:
            said = str(why)
    build.rules.PROCESSOR_S = limit
    if (said is None) != (says is None) or (says or "") not in (said or ""):
        return [f"{name}: {said!r} does not say {says!r}"]
    return []


def judge_grader(out):
    return [*at_once(functools.partial(judge_endless, out), list(ENDLESS)),
            *at_once(functools.partial(judge_outside, out), list(OUTSIDE)),
            *judge_lines(out)]
