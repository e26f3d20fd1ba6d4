#!/usr/bin/env python3
"""labs.py NUMBER OUT - checks that a lab's tests are right.

The reference scores all 70 points. The skeleton compiles without a warning and scores
the floor that grade.c declares. Every mutant (a wrong solution of mutants.txt) passes all
tests before its own and fails that one. At least one mutant fails only one test, because
a student's wrong solution for --break must do so. The skeleton is refused for --break.
The handout and grade.c state the same points. If a lab has another right solution,
second.c, it scores 70 points, too. The wrong solutions of unseen.txt, whose authors had
not read grade.c, are graded by the command itself.

labs.py export OUT - checks that a tree made by labs/export can build and grade without
this tree. In every variant the reference has all points and the skeleton its floor; a
solution of another variant has fewer points. No reference is in the exported tree. Every
lab has a variant.

labs.py load OUT [NUMBER ..] - checks that points and measured values are the same on an
idle and on a busy machine.
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "labs"))
from grading import batch, build, changes, lab, run, score  # noqa: E402
from importlib.machinery import SourceFileLoader  # noqa: E402

SEED = 20261123  # any
export = SourceFileLoader("export", str(TOP / "labs/export")).load_module()


def at_once(judge, items):
    """All complaints of judge() about the items, in as many processes as there are
    cores."""
    with batch.pool(len(os.sched_getaffinity(0))) as pool:
        return sum(pool.map(judge, items), [])


def points_in_handout(text):
    """{test: points}, from the table in the text of a README.md."""
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.M)
    return {name: int(points) for name, points in rows}


def floor_of(folder):
    """The points of a lab's skeleton, as grade.c declares them."""
    return int(re.search(r"\.floor = (\d+)", (folder / "grade.c").read_text())[1])


def grade_text(its, builder, tests, text, stop=False, every=False, seed=0):
    """Grade a file with this text: a row for each test."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "handed-in.c"
        path.write_text(text)
        program, _ = builder.build(path, folder)
        return score.run_tests(program, tests, stop=stop, every=every, seed=seed)


def judge_points(its, about):
    said = {test["name"]: test["points"] for test in about["tests"]}
    told = points_in_handout((its.folder / "README.md").read_text())
    if sum(said.values()) != 70:
        yield f"the points sum to {sum(said.values())}, not 70"
    if said != told:
        yield f"README.md says {told}, grade.c says {said}"


def judge_right(builder, tests, path):
    """Complaints about a right solution, graded with hidden cases."""
    complaints = []
    for row in grade_text(builder.lab, builder, tests, path.read_text(), seed=SEED):
        if not row.passed:
            said = row.result.said if row.result else f"needs {row.missing}"
            complaints.append(f"{path.name} fails {row.test['name']}: {said}")
    return complaints


def judge_skeleton(its, builder, about):
    with tempfile.TemporaryDirectory() as folder:
        program, _ = builder.build(its.folder / "skeleton.c", folder, werror=True)
        rows = score.run_tests(program, about["tests"])
    got, _ = score.points_of(rows)
    if got != about["floor"]:
        yield f"the skeleton scores {got}, grade.c declares {about['floor']}"
    done = subprocess.run(
        [TOP / "labs/grade", str(its.number), "--break",
         its.folder / "skeleton.c", about["tests"][0]["name"]],
        capture_output=True, text=True, check=False)
    if done.returncode != 2 or "is the skeleton" not in done.stderr:
        yield f"--break accepts the skeleton: {done.stdout}{done.stderr}"
    for row in rows:
        if row.result and "processor time" in row.result.said:
            yield f"the skeleton hangs in {row.test['name']}"


def judge_mutant(builder, tests, one):
    """Complaints about how one (mutant, solution that it changes) was graded."""
    mutant, path = one
    if mutant.value not in [test["name"] for test in tests]:
        return [f"{mutant.name}: there is no test {mutant.value}"]
    try:
        wrong = mutant.apply({path.name: path.read_text()})[path.name]
        rows = grade_text(builder.lab, builder, tests, wrong, stop=True)
    except (ValueError, build.Refused) as e:
        return [f"{mutant.name}: {e}"]
    last = rows[-1]
    if last.passed:
        return [f"{mutant.name} passes every test"]
    if last.test["name"] != mutant.value:
        return [f"{mutant.name} fails {last.test['name']}, not {mutant.value}: "
                f"{last.result.said}"]
    print(f"  {mutant.name}: {last.test['name']}: {last.result.said}", flush=True)
    return []


def judge_hidden(builder, tests, one):
    """Complaints about how one (wrong solution, reference) was graded with hidden
    cases."""
    mutant, path = one
    try:
        wrong = mutant.apply({path.name: path.read_text()})[path.name]
        row = grade_text(builder.lab, builder, tests, wrong, stop=True, seed=SEED)[-1]
    except ValueError as e:
        return [f"{mutant.name}: {e}"]
    except build.Refused as e:
        return [] if mutant.value == "compile" else [f"{mutant.name}: {e}"]
    if row.passed or row.test["name"] != mutant.value:
        return [f"{mutant.name}: {row.test['name']} ends it, not {mutant.value}: "
                f"{row.result.said}"]
    print(f"  {mutant.name}: {row.test['name']}: {row.result.said}", flush=True)
    return []


def judge_unseen(its, out, one):
    """Complaints about what the command says of one (mutant, solution that it
    changes): its status, and the first test that does not give all points."""
    mutant, path = one
    try:
        wrong = mutant.apply({path.name: path.read_text()})[path.name]
    except ValueError as e:
        return [f"{mutant.name}: {e}"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "build").symlink_to(pathlib.Path(out).resolve())
        (folder / its.file).write_text(with_values(wrong, []))
        status, said = run_job(TOP / "labs/grade", its.number, folder / its.file,
                               "--out", folder)
        result = json.loads((folder / f"{its.number:02}/results.json").read_text())
    first = next((test for test in result["tests"]
                  if test["score"] < test["max_score"]), {"name": "no test"})
    if status != 1 or first["name"] != mutant.value:
        return [f"{mutant.name}: status {status}, and {first['name']} finds it, not "
                f"{mutant.value}: {said}"]
    print(f"  {mutant.name}: {first['name']}: {first['output']}", flush=True)
    return []


def judge_break(all_mutants, builder, tests, text):
    for mutant in all_mutants:
        wrong = mutant.apply({"reference.c": text})["reference.c"]
        found = score.found_by(grade_text(builder.lab, builder, tests, wrong,
                                          every=True))
        if [row.test["name"] for row in found] == [mutant.value]:
            return
    yield "every mutant fails several tests, so --break may be impossible"


def judge_lab(number, out):
    its = lab.find(number)
    builder = build.Builder(its, out, ours=True)
    about = its.about(builder)
    tests = about["tests"]
    complaints = list(judge_points(its, about))
    complaints += judge_skeleton(its, builder, about)
    right, wrong = [], {}
    for solution, file, fewest in (("reference.c", "mutants.txt", 5),
                                   ("second.c", "unseen.txt", 3)):
        path = its.folder / solution
        if not path.exists():
            path = right[0]
        found = changes.read(its.folder / file, changes.MUTANT)
        if len(found) < fewest:
            complaints.append(f"{file}: {len(found)} are too few; try: {fewest}")
        right += [path] if path not in right else []
        wrong[file] = [(mutant, path) for mutant in found]
    complaints += at_once(functools.partial(judge_right, builder, tests), right)
    complaints += at_once(functools.partial(judge_mutant, builder, tests),
                          wrong["mutants.txt"])
    complaints += at_once(functools.partial(judge_unseen, its, out),
                          wrong["unseen.txt"])
    hidden = its.folder / "hidden.txt"
    if hidden.exists():
        complaints += at_once(functools.partial(judge_hidden, builder, tests),
                              [(mutant, right[0])
                               for mutant in changes.read(hidden, changes.MUTANT)])
    if not complaints:
        ours = [mutant for mutant, _ in wrong["mutants.txt"]]
        complaints += judge_break(ours, builder, tests, right[0].read_text())
    return [f"{its}: {c}" for c in complaints]


def measured(its, builder, tests, out):
    """All results of grading the reference and the skeleton, without the
    seconds."""
    table = out / "run.csv"
    seen = []
    for name in ("reference.c", "skeleton.c"):
        table.write_text("")
        with tempfile.TemporaryDirectory() as folder:
            program, _ = builder.build(its.folder / name, folder)
            for test in tests:
                result = run.run_test(program, test["name"], csv=table)
                seen.append((name, test["name"], result.part, result.said))
        seen.append(table.read_text())
    return seen


def judge_load(numbers, out):
    """Compare an idle machine with one that runs two busy processes for each
    core."""
    complaints = []
    for its in [lab.find(number) for number in numbers] or lab.every():
        builder = build.Builder(its, out, ours=True)
        tests = its.about(builder)["tests"]
        with tempfile.TemporaryDirectory() as folder:
            idle = measured(its, builder, tests, pathlib.Path(folder))
            load = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                    for _ in range(2 * len(os.sched_getaffinity(0)))]
            try:
                busy = measured(its, builder, tests, pathlib.Path(folder))
            finally:
                for process in load:
                    process.kill()
                    process.wait()
        complaints += [f"{its}: under load {b}, not {a}"
                       for a, b in zip(idle, busy) if a != b]
    return complaints


def run_job(*words):
    """(status, output) of a command."""
    done = subprocess.run([str(word) for word in words], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout + done.stderr


TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"[^\"\n]*\"|->|[-+<>=!&|*/%]=|&&|\|\||"
                   r"\+\+|--|<<|>>|\S")
RUN = 20  # this many equal tokens in a row must have been copied


def tokens(text):
    return TOKEN.findall(re.sub(r"//[^\n]*", "", text))


def runs(text):
    found = tokens(text)
    return {tuple(found[i : i + RUN]) for i in range(len(found) - RUN + 1)}


def bodies(text):
    """The bodies of a file's functions."""
    return re.findall(r"^\{\n(.*?)^\}", text, re.M | re.S)


def judge_secrets(tree):
    """Complaints about parts of a reference in the tree: RUN of its tokens in a row that
    are in a file of the tree, but in no skeleton and not in lab.h."""
    shown, given = set(), set()
    for path in tree.glob("**/*.[ch]"):
        if path.name in ("skeleton.c", "lab.h"):
            given |= runs(path.read_text())
        shown |= runs(path.read_text())
    for its in lab.every():
        found = bodies((its.folder / "reference.c").read_text())
        if not found:
            yield f"{its}: the reference has no function bodies to look for"
        for body in found:
            for run in sorted((runs(body) & shown) - given)[:1]:
                yield f"{its}: the export holds {' '.join(run)!r} of the reference"


def grade_there(tree, its, name, text):
    """Grade a file with the exported command. Return (status, score, output)."""
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


def with_values(text, changed):
    """A reference for a term with these variants, in the form that a student may hand in:
    the macros of term.h replace its #include."""
    term = (TOP / "labs/term.h").read_text()
    for change in changed:
        term = re.sub(rf"(#define {change.name} +)\S+", rf"\g<1>{change.value}", term)
    values = "".join(re.findall(r"^#define LAB_.*\n", term, re.M)[1:])
    return text.replace('#include "labs/term.h"\n', values)


def judge_tree(tree, term, its):
    """Complaints about one lab of a term's repository, graded in there."""
    complaints = []
    chosen = export.variant_of(term, its)
    changed = [c.name for c in chosen]
    text = (its.folder / "reference.c").read_text()
    status, score, said = grade_there(tree, its, "reference.c", text)
    if (status, score) != (0, 70):
        complaints.append(f"{its}, {changed}: the reference has {score} points: "
                          f"{said}")
    # Last year's file solves the open variant. If this term has the open
    # variant, it solves the variant with all changes.
    other = [] if chosen else export.variants(its)
    status, score, said = grade_there(tree, its, its.file, with_values(text, other))
    if status != 1 or score >= 70:
        complaints.append(f"{its}, {changed}: the file of {[c.name for c in other]} "
                          f"has {score} points: {said}")
    there = tree / "labs" / its.folder.name
    told, ours = (points_in_handout((folder / "README.md").read_text())
                  for folder in (there, its.folder))
    if told != ours:
        complaints.append(f"{its}, {changed}: README.md says {told}, ours {ours}")
    floor = floor_of(there)
    status, score, said = grade_there(tree, its, its.file,
                                      (there / "skeleton.c").read_text())
    if score != floor or "warning" in said:
        complaints.append(f"{its}, {changed}: the skeleton has {score} of its "
                          f"{floor} points: {said}")
    return complaints


def term_with(wanted):
    """The name of a term that changes exactly these macros."""
    names = [c.name for its in lab.every() for c in export.variants(its)]
    for number in range(1000000):
        term = f"T{number}"
        if all(export.changes_it(term, name) == (name in wanted) for name in names):
            return term
    raise ValueError(f"no term changes {wanted}")


def judge_known():
    """A term names the labs whose variant is open, or that of the term before."""
    labs = [lab.find("1"), lab.find("2")]
    first = [c.name for c in export.variants(labs[0])]
    term, other = term_with(first), term_with([])
    said = [export.known(labs, *terms) for terms in
            ((term, ""), (term, term), (term, other))]
    ought = ["\nthe open variant, whose solutions students may have: labs 2",
             f"\nthe variant of {term}, whose solutions students may have: labs 1, 2",
             f"\nthe variant of {other}, whose solutions students may have: labs 2"]
    if said != [ought[0], ought[0] + ought[1], ought[0] + ought[2]]:
        return [f"labs that are known: {said}"]
    return []


def judge_exports():
    macros = {its.number: [c.name for c in export.variants(its)]
              for its in lab.every()}
    # A term that changes nothing, and one that changes everything. Then, for a
    # lab with several macros, a term for each macro alone.
    trees = [([], lab.every()), (sum(macros.values(), []), lab.every())]
    for its in lab.every():
        if len(macros[its.number]) > 1:
            trees += [([name], [its]) for name in macros[its.number]]
    complaints = [f"lab {number}: no term changes it; try: variants.txt"
                  for number, names in macros.items() if not names]
    complaints += judge_known()
    for wanted, labs in trees:
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder) / "tree"
            term = term_with(wanted)
            export.export(term, tree, labs)
            complaints += judge_secrets(tree)
            complaints += at_once(functools.partial(judge_tree, tree, term), labs)
    return complaints


def main():
    what, out, *more = sys.argv[1:]
    if what == "export":
        complaints = judge_exports()
    elif what == "load":
        complaints = judge_load(more, out)
    else:
        complaints = judge_lab(what, out)
    print("\n".join(complaints) or f"{what}: passed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
