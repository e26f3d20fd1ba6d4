#!/usr/bin/env python3
"""labs.py NUMBER OUT - checks that a lab's tests are right.

The reference scores all 70 points. The skeleton compiles without a warning and scores
the floor that grade.c declares. Every mutant (a wrong solution of mutants.txt) passes all
tests before its own and fails that one. At least one mutant fails only one test, because
a student's wrong solution for --break must do so. The skeleton is refused for --break.
The handout and grade.c state the same points. If a lab has another right solution,
second.c, it scores 70 points, too. The wrong solutions of unseen.txt, whose authors had
not read grade.c, fail their tests, too; the first one is graded by the command itself.

labs.py export OUT - checks that a tree made by labs/export can build and grade without
this tree, and holds no reference. A term chooses three times or more in each lab, never
the open variant, and a solution of the open variant fails after each of these choices. If LOCKSTEP_REFERENCES names a
teacher's changes of the references, the variants' own references have all points.

labs.py load OUT [NUMBER ..] - checks that points and measured values are the same on an
idle and on a busy machine.
"""

import functools
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "labs"))
from grading import batch, build, changes, lab, run, score  # noqa: E402
from importlib.machinery import SourceFileLoader  # noqa: E402

SEED = 20261123  # any
SEEDS = (SEED, 4242)  # of right solutions
export = SourceFileLoader("export", str(TOP / "labs/export")).load_module()


def at_once(judge, items):
    """All complaints of judge() about the items, in as many processes as there are
    cores."""
    with batch.pool(len(os.sched_getaffinity(0))) as pool:
        return sum(pool.map(judge, items), [])


def judge_fast(judge, more, *words):
    """The complaints of judge() if students' files are compiled with `more` words, with
    all sanitizers, and linked by gold if it is there. If there are any, and in a long
    test, files are compiled and linked as for students, which takes up to twice as long."""
    if os.environ.get("LOCKSTEP_LONG"):
        return judge(*words)
    limited = build.compile_limited
    fast = more + ["-fuse-ld=gold"] * bool(shutil.which("ld.gold"))
    build.compile_limited = lambda words, folder: limited([*words, *fast], folder)
    try:
        complaints = judge(*words)
    finally:
        build.compile_limited = limited
    return complaints and judge(*words)


class VariantBuilder(build.Builder):
    """Compiles grade.c, which each variant needs anew, without optimization."""

    def compile_once(self, name, files, flags, own, others=None):
        quick = flags + ["-O0"] * name.startswith("lab-")
        return super().compile_once(name, files, quick, own, others)


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
    with tempfile.TemporaryDirectory() as folder:
        program, _ = builder.build(path, folder)
        for seed in SEEDS:
            for row in score.run_tests(program, tests, seed=seed):
                if not row.passed:
                    said = row.result.said if row.result else f"needs {row.missing}"
                    complaints.append(f"{path.name}, seed {seed}, fails "
                                      f"{row.test['name']}: {said}")
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
        (folder / its.file).write_text(wrong)
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
    """A mutant of the last test has passed all others, as judge_mutant() has seen."""
    names = [test["name"] for test in tests]
    if any(mutant.value == names[-1] for mutant in all_mutants):
        return
    for mutant in sorted(all_mutants, key=lambda m: -names.index(m.value)):
        wrong = mutant.apply({"reference.c": text})["reference.c"]
        found = score.found_by(grade_text(builder.lab, builder, tests, wrong,
                                          every=True))
        if [row.test["name"] for row in found] == [mutant.value]:
            return
    yield "every mutant fails several tests, so --break may be impossible"


def judge_lab(number, out):
    its = lab.find(number)
    builder = build.Builder(its, out)
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
    complaints += at_once(functools.partial(judge_fast, judge_mutant, ["-O0"], builder,
                                         tests),
                          wrong["mutants.txt"] + wrong["unseen.txt"][1:])
    complaints += judge_unseen(its, out, wrong["unseen.txt"][0])
    hidden = its.folder / "hidden.txt"
    if hidden.exists():
        # they run long, so that optimization takes less time than it saves
        complaints += at_once(functools.partial(judge_fast, judge_hidden, [], builder,
                                                tests),
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
        builder = build.Builder(its, out)
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


def handout_of(its):
    """The files of a lab that a term may change, by name."""
    return {path.name: path.read_text() for path in
            [its.folder / "README.md", its.folder / "skeleton.c", *its.folder.glob("*.h")]}


def references():
    """A teacher's changes of the references, which are not in this tree. LOCKSTEP_REFERENCES
    names the file; without it no test knows a solution of another variant."""
    path = os.environ.get("LOCKSTEP_REFERENCES")
    return changes.read(pathlib.Path(path), changes.VARIANT) if path else None


def solution_of(its, chosen, known):
    """The reference of a lab's variant, from a teacher's changes."""
    texts = {"reference.c": (its.folder / "reference.c").read_text()}
    for want in chosen:
        texts = next(c for c in known
                     if (c.name, c.value) == (want.name, want.value)).apply(texts)
    return texts["reference.c"]


def judge_variant(builder, chosen, opened, folder):
    """Complaints about a variant of a lab: its handout can be made, its skeleton has the
    same points, and the open variant's solution, the program `opened`, fails. If the
    teacher's changes are known, the variant's own reference has all points."""
    its = builder.lab
    name = f"{its}, {', '.join(f'{c.name}={c.value}' for c in chosen)}"
    texts = was = handout_of(its)
    top = pathlib.Path(folder)
    (top / "labs").mkdir()
    export.write_term(TOP / "labs/term.h", top / "labs/term.h", "any", chosen)
    builder = VariantBuilder(its, builder.out, top)
    try:
        about = its.about(builder)
        for change in chosen:
            texts = change.apply(texts)
    except (ValueError, build.Refused) as e:
        return [f"{name}: {e}"]
    rows = score.run_tests(build.Program(builder.judge(), opened), about["tests"],
                           stop=True)
    complaints = [f"{name}: the open variant's solution passes"] \
        if rows[-1].passed else []
    if texts["skeleton.c"] != was["skeleton.c"]:
        got, _ = score.points_of(
            grade_text(its, builder, about["tests"], texts["skeleton.c"]))
        complaints += [f"{name}: the skeleton has {got} of its {about['floor']} points"] \
            if got != about["floor"] else []
    known = references()
    if known is not None:
        mine = top / "reference.c"
        mine.write_text(solution_of(its, chosen, known))
        complaints += [f"{name}: {said}" for said in
                       judge_right(builder, about["tests"], mine)]
    return complaints


def judge_variants(out, its):
    """Complaints about each single change of a lab, and about one with all of them."""
    every = export.combinations(its)
    last = every[-1:] if len(every[-1]) > 1 else []
    builder, complaints = build.Builder(its, out), []
    with tempfile.TemporaryDirectory() as folder:
        opened, _ = builder.build(its.folder / "reference.c", folder)
        for chosen in [one for one in every if len(one) == 1] + last:
            with tempfile.TemporaryDirectory() as top:
                complaints += judge_variant(builder, chosen, opened.file, top)
    return complaints


# What has two values by nature: a vector has two ends, a ring two directions, and steps
# count up or down.
TWO_VALUES = {"LAB_ROWS_UP", "LAB_RING_STEP", "LAB_CUT_UP", "LAB_STEPS_DOWN"}


def judge_choices():
    """A term chooses three times or more in each lab, from three values or more. None of
    them is the open variant's. The handout of each combination can be made."""
    opened = dict(re.findall(r"#define (LAB_\w+) +(-?\d+)\b",
                             (TOP / "labs/term.h").read_text()))
    for its in lab.every():
        values = {}
        for change in export.variants(its):
            values.setdefault(change.name, {opened[change.name]}).add(change.value)
            if change.value == opened[change.name]:
                yield f"{its}: {change.name}={change.value} is the open variant"
        if len(values) < 3:
            yield f"{its}: a term chooses only {sorted(values)}"
        for name, several in values.items():
            if len(several) < (2 if name in TWO_VALUES else 3):
                yield f"{its}: {name} has only the values {sorted(several)}"
        for chosen in export.combinations(its):
            texts = handout_of(its)
            try:
                for change in chosen:
                    texts = change.apply(texts)
            except ValueError as e:
                yield f"{its}: {e}"


def judge_draws():
    """No term has the open variant, and no variant comes again before all were used."""
    complaints = []
    for its in lab.every():
        every = export.combinations(its)
        names = [f"F{year}" for year in range(26, 26 + 2 * len(every))]
        drawn = [[(c.name, c.value) for c in export.variant_of(name, its, names[:i])]
                 for i, name in enumerate(names)]
        rounds = [drawn[:len(every)], drawn[len(every):]]
        if any(not one for one in drawn) or any(
                a == b for a, b in zip(drawn, drawn[1:])):
            complaints.append(f"{its}: terms have the open variant, or that of the term "
                              f"before: {drawn}")
        for one in rounds:
            if len(set(map(tuple, one))) != len(every):
                complaints.append(f"{its}: a variant comes again too early: {one}")
    return complaints


def judge_references():
    """labs/export writes a term's references from a file outside the tree, and refuses one
    that is inside, or that lacks a change."""
    its, complaints = lab.find("7"), []
    want, *more = export.variant_of("F26", its)
    rate = "float rate = job->lr / (float)l->workers;"
    same = "".join(f"[{c.name} {c.value}]\n- its->left\n+ its->left\n" for c in more)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "mine.txt").write_text(f"[{want.name} {want.value}]\n- {rate}\n"
                                         "+ float rate = job->lr;\n" + same)
        (folder / "empty.txt").write_text("# nothing yet\n")
        for path, status, said in ((folder / "mine.txt", 0, want.name),
                                   (folder / "empty.txt", 2, f"has no [{want.name}"),
                                   (TOP / "labs/term.h", 2, "in the public tree")):
            done = run_job(TOP / "labs/export", "F26", folder / "refs", "7",
                           "--references", path)
            if done[0] != status or said not in done[1] or done[1].count("\n") != 1:
                complaints.append(f"--references {path.name}: {done}")
        text = (folder / "refs" / f"{its.folder.name}.c").read_text()
        if rate in text or "float rate = job->lr;" not in text:
            complaints.append("--references wrote a reference without its change")
    return complaints


def judge_tree(tree, its):
    """Complaints about one lab of a term's repository, graded in there."""
    there = tree / "labs" / its.folder.name
    told, ought = (points_in_handout((folder / "README.md").read_text())
                   for folder in (there, its.folder))
    complaints = [f"{its}: README.md says {told}, ours {ought}"] if told != ought else []
    floor = floor_of(there)
    _, points, said = grade_there(tree, its, its.file, (there / "skeleton.c").read_text())
    if points != floor or "warning" in said:
        complaints.append(f"{its}: the skeleton has {points} of its {floor} points: {said}")
    return complaints


def judge_exports(out):
    complaints = [*judge_choices(), *judge_draws(), *judge_references()]
    builder = build.Builder(lab.find("4"), out)
    builder.judge(), builder.around()
    complaints += at_once(functools.partial(judge_fast, judge_variants, ["-O0"], out),
                          lab.every())
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        export.export("F26", tree, lab.every())
        complaints += judge_secrets(tree)
        first, *others = lab.every()
        complaints += judge_tree(tree, first)  # with nothing from this tree
        shutil.rmtree(tree / "labs/out/build")
        (tree / "labs/out/build").symlink_to(pathlib.Path(out).resolve())
        complaints += at_once(functools.partial(judge_tree, tree), others)
    return complaints


def main():
    # as on a machine that allows no more descriptors
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    what, out, *more = sys.argv[1:]
    if what == "export":
        complaints = judge_exports(out)
    elif what == "load":
        complaints = judge_load(more, out)
    else:
        complaints = judge_lab(what, out)
    print("\n".join(complaints) or f"{what}: passed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
