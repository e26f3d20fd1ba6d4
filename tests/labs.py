#!/usr/bin/env python3
"""labs.py NUMBER OUT - show that a lab's tests are right.

The reference scores all 70 points. The skeleton compiles without a warning and
scores what grade.c declares. Every mutant passes all tests before its own and fails
that one; some mutant is found by one test only, as a break-it must be; the skeleton
is refused as one. The handout's points are grade.c's.

labs.py cheats OUT - show that files that cheat gain nothing and harm nothing.

labs.py export OUT - show that what labs/export makes builds and grades where nothing
else is, that references have all points in every variant, that a solution of another
variant has not, and that no reference is in it.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "labs"))
from grading import build, changes, lab  # noqa: E402
from importlib.machinery import SourceFileLoader  # noqa: E402

grade = SourceFileLoader("grade", str(TOP / "labs/grade")).load_module()
export = SourceFileLoader("export", str(TOP / "labs/export")).load_module()


def points_in_handout(text):
    """{test: points} of the table of a README.md."""
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.M)
    return {name: int(points) for name, points in rows}


def grade_text(its, builder, tests, text, stop=False, every=False):
    """The rows of a file with this text."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "handed-in.c"
        path.write_text(text)
        program, _ = builder.build(path, folder)
        return grade.run_tests(program, tests, stop=stop, every=every)


def judge_points(its, about):
    said = {test["name"]: test["points"] for test in about["tests"]}
    told = points_in_handout((its.folder / "README.md").read_text())
    if sum(said.values()) != 70:
        yield f"the points sum to {sum(said.values())}, not 70"
    if said != told:
        yield f"README.md says {told}, grade.c says {said}"


def judge_reference(builder, tests, text):
    for row in grade_text(builder.lab, builder, tests, text):
        if not row.passed:
            said = row.result.said if row.result else f"needs {row.missing}"
            yield f"the reference fails {row.test['name']}: {said}"


def judge_skeleton(its, builder, about):
    with tempfile.TemporaryDirectory() as folder:
        program, _ = builder.build(its.folder / "skeleton.c", folder, werror=True)
        rows = grade.run_tests(program, about["tests"])
    got, _ = grade.points_of(rows)
    if got != about["floor"]:
        yield f"the skeleton scores {got}, grade.c declares {about['floor']}"
    done = subprocess.run(
        [TOP / "labs/grade", str(its.number), "--break",
         its.folder / "skeleton.c", about["tests"][0]["name"]],
        capture_output=True, text=True, check=False)
    if done.returncode != 2 or "is the skeleton" not in done.stderr:
        yield f"the skeleton does as a break-it: {done.stdout}{done.stderr}"
    for row in rows:
        if row.result and "processor time" in row.result.said:
            yield f"the skeleton hangs in {row.test['name']}"


def judge_mutant(mutant, builder, tests, text):
    if mutant.value not in [test["name"] for test in tests]:
        yield f"mutant {mutant.name}: there is no test {mutant.value}"
        return
    try:
        wrong = mutant.apply({"reference.c": text})["reference.c"]
        rows = grade_text(builder.lab, builder, tests, wrong, stop=True)
    except (ValueError, build.Refused) as e:
        yield f"mutant {mutant.name}: {e}"
        return
    last = rows[-1]
    if last.passed:
        yield f"mutant {mutant.name} passes every test"
    elif last.test["name"] != mutant.value:
        yield (f"mutant {mutant.name} fails {last.test['name']}, not "
               f"{mutant.value}: {last.result.said}")
    else:
        print(f"  {mutant.name}: {last.test['name']}: {last.result.said}")


def judge_break(all_mutants, builder, tests, text):
    for mutant in all_mutants:
        wrong = mutant.apply({"reference.c": text})["reference.c"]
        found = grade.found_by(grade_text(builder.lab, builder, tests, wrong,
                                          every=True))
        if [row.test["name"] for row in found] == [mutant.value]:
            return
    yield "no mutant is found by one test only: no break-it can be"


def judge_lab(number, out):
    its = lab.find(number)
    builder = build.Builder(its, out, ours=True)
    about = its.about(builder)
    text = (its.folder / "reference.c").read_text()
    all_mutants = changes.read(its.folder / "mutants.txt", changes.MUTANT)
    complaints = list(judge_points(its, about))
    complaints += judge_reference(builder, about["tests"], text)
    complaints += judge_skeleton(its, builder, about)
    if len(all_mutants) < 5:
        complaints.append(f"{len(all_mutants)} mutants are too few; try: 5")
    for mutant in all_mutants:
        complaints += judge_mutant(mutant, builder, about["tests"], text)
    if not complaints:
        complaints += judge_break(all_mutants, builder, about["tests"], text)
    return [f"{its}: {c}" for c in complaints]


# What is put before lab_exchange(), what its first statement becomes, and what is
# said; None: it can be graded, but has no more points than the skeleton.
CHEATS = {
    "forks": ("int fork(void);", "fork();", "uses fork"),
    "sleeps": ("int usleep(unsigned);", "usleep(1);", "uses usleep"),
    "writes": ("int creat(const char *, int);", 'creat("mark", 384);',
               "uses creat"),
    "reads": ('#include "/etc/passwd"', "", "includes /etc/passwd"),
    "borrows": ('#include "{tree}/labs/04-ring/reference.c"', "", "includes"),
    "reads_by_error": ('#include "/etc/passwd"\n#error stop', "",
                       "includes /etc/passwd"),
    "never_compiles": ("#define A(x) x x x x x x x x x x x x x x x x\n"
                       "#define B(x) A(A(A(A(A(A(A(A(A(x)))))))))\nB(int y;)", "",
                       "does not compile"),
    "exits": ("void exit(int);", "exit(0);", "uses exit"),
    "allocates": ("#include <stdlib.h>", "void *volatile p = malloc(9);\n    (void)p;",
                  "uses malloc"),
    "speaks_assembler": ("", '__asm__ volatile("nop");', "assembler"),
    "runs_first": ("static volatile int x;\n__attribute__((constructor)) static "
                   "void f(void)\n{\n    x = 1;\n}", "",
                   "before main"),
    "replaces_the_judge": ("int lab_want(void);\nint lab_want(void)\n"
                           "{\n    return 1;\n}", "", "defines lab_want"),
    "asks_the_judge": ("int lab_release(struct lab *l);", "lab_release(l);",
                       "uses lab_release"),
    "prints_points": ("#include <stdio.h>", r'printf("{{\"ok\": true, \"said\": '
                      r'\"\"}}\n70/70\n");', None),
    "crashes": ("", "__builtin_trap();", 0),
    "runs_in_circles": ("", "for (volatile int on = 1; on;)\n        ;", 0),
    "shares_memory": ("static float *volatile all[16];", "all[l->rank] = v;",
                      "static variables"),
}


def cheat_text(text, before, first):
    """The skeleton that cheats."""
    at = text.index("int lab_exchange(")
    body = text[at:].replace("{\n", "{\n    " + first + "\n", 1) if first \
        else text[at:]
    return text[:at] + before + "\n\n" + body


def judge_cheat(its, builder, about, name, text, out):
    """Complaints about how one cheat was graded, by the command itself."""
    before, first, said = CHEATS[name]
    before = before.replace("{tree}", str(TOP))
    first = first.replace("{{", "{").replace("}}", "}")
    path = out / name / its.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(cheat_text(text, before, first))
    done = subprocess.run(
        [TOP / "labs/grade", str(its.number), path, "--out", out / "results"],
        capture_output=True, text=True, check=False)
    result = json.loads((out / f"results/{its.number:02}/results.json").read_text())
    most = about["floor"] if said is None else 0
    if done.returncode != 1:
        yield f"{name}: status {done.returncode}: {done.stdout}{done.stderr}"
    if result["score"] != most:
        yield f"{name}: {result['score']} points, not {most}"
    if isinstance(said, str) and said not in result["output"]:
        yield f"{name}: {result['output']!r} does not say {said!r}"
    if sorted(os.listdir(path.parent)) != [its.file]:
        yield f"{name}: left {os.listdir(path.parent)}"


def judge_cheats():
    its = lab.find("4")
    text = (its.folder / "skeleton.c").read_text()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        about = its.about(build.Builder(its, out / "results/build"))
        complaints = []
        for name in CHEATS:
            complaints += judge_cheat(its, None, about, name, text, out)
    return complaints


TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"[^\"\n]*\"|->|[-+<>=!&|*/%]=|&&|\|\||"
                   r"\+\+|--|<<|>>|\S")
RUN = 20  # so many tokens in a row are no accident


def tokens(text):
    return TOKEN.findall(re.sub(r"//[^\n]*", "", text))


def runs(text):
    found = tokens(text)
    return {tuple(found[i : i + RUN]) for i in range(len(found) - RUN + 1)}


def bodies(text):
    """What stands between the braces of a file's functions."""
    return re.findall(r"^\{\n(.*?)^\}", text, re.M | re.S)


def judge_secrets(tree):
    """Runs of a reference's tokens that are in the tree, but in no skeleton."""
    shown, given = set(), set()
    for path in tree.glob("**/*.[ch]"):
        if path.name in ("skeleton.c", "lab.h"):
            given |= runs(path.read_text())
        shown |= runs(path.read_text())
    for its in lab.every():
        for body in bodies((its.folder / "reference.c").read_text()):
            for run in sorted((runs(body) & shown) - given)[:1]:
                yield f"{its}: the export holds {' '.join(run)!r} of the reference"


def grade_there(tree, its, name, text):
    """(status, score, said) of a file, by the exported command itself."""
    path = tree / "labs" / its.folder.name / name
    path.write_text(text)
    done = subprocess.run(
        ["labs/grade", str(its.number), path], cwd=tree, capture_output=True,
        text=True, check=False, env={"PATH": os.environ["PATH"],
                                     "CC": os.environ.get("CC", "cc")})
    path.unlink()
    result = tree / f"labs/out/{its.number:02}/results.json"
    score = json.loads(result.read_text())["score"] if result.exists() else None
    return done.returncode, score, done.stdout + done.stderr


def without_term(text):
    """A reference as a student of the open variant would have handed it in."""
    term = (TOP / "labs/term.h").read_text()
    values = "".join(re.findall(r"^#define LAB_.*\n", term, re.M)[1:])
    return text.replace('#include "labs/term.h"\n', values)


def judge_tree(tree, its, changed):
    text = (its.folder / "reference.c").read_text()
    status, score, said = grade_there(tree, its, "reference.c", text)
    if (status, score) != (0, 70):
        yield f"{its}, {changed}: the reference has {score} points: {said}"
    if changed:
        status, score, said = grade_there(tree, its, its.file, without_term(text))
        if status != 1 or score >= 70:
            yield f"{its}, {changed}: the open variant has {score} points: {said}"


def term_with(wanted):
    """A term whose variants are exactly those macros."""
    for number in range(10000):
        term = f"T{number}"
        changed = [c.name for its in lab.every() for c in export.variant_of(term, its)]
        if set(changed) == set(wanted):
            return term
    raise ValueError(f"no term changes {wanted}")


def judge_exports():
    macros = {its.number: [c.name for c in export.variants(its)]
              for its in lab.every()}
    # All at once; then those of one lab in their other combinations.
    trees = [(sum(macros.values(), []), lab.every())]
    for its in lab.every():
        if len(macros[its.number]) > 1:
            trees += [([name], [its]) for name in macros[its.number]]
    complaints = []
    for wanted, labs in trees:
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder) / "tree"
            term = term_with(wanted)
            export.export(term, tree, labs)
            complaints += judge_secrets(tree)
            for its in labs:
                changed = [c.name for c in export.variant_of(term, its)]
                complaints += judge_tree(tree, its, changed)
                shutil.rmtree(tree / "labs/out/build", ignore_errors=True)
    return complaints


def main():
    what, out = sys.argv[1:]
    if what == "cheats":
        complaints = judge_cheats()
    elif what == "export":
        complaints = judge_exports()
    else:
        complaints = judge_lab(what, out)
    print("\n".join(complaints) or f"{what}: as it should be")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
