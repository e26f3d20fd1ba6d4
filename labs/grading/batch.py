"""batch.py - grade what a whole course has handed in.

DIR has a folder for each student, DIR/NAME/ring.c and DIR/NAME/wrong.c, or Canvas's flat
files, such as DIR/smithanna_12345_67890_ring-1.c. A row of the table is on the disk before
the next begins. If the table exists, its students are not graded again. Beside it are
RESULTS/NAME.json, one for each student, with all messages, and a table of similar files.
"""

import concurrent.futures
import csv
import hashlib
import json
import multiprocessing
import os
import pathlib
import re
import tempfile

from . import build, score, similar


class Student:
    """What one student has handed in: paths by the name of the file that was asked for.
    Bytes of the name that are no text are written as \\udcNN, line breaks as \\x0a."""

    def __init__(self, name):
        text = name.encode(errors="backslashreplace").decode()
        self.name = score.visible(text.replace("\n", "\\x0a"))
        self.paths, self.version = {}, {}

    def take(self, file, path, version=0):
        if version >= self.version.get(file, 0):
            self.paths[file], self.version[file] = path, version


def students(folder, files):
    """The students of a folder, by name."""
    found = {}
    for path in sorted(pathlib.Path(folder).iterdir()):
        if path.is_dir():
            its = found.setdefault(path.name, Student(path.name))
            for file in files if not path.is_symlink() else []:
                if os.path.lexists(path / file):
                    its.take(file, path / file)
            continue
        flat = re.fullmatch(r"(.+?)_(?:LATE_)?\d+_\d+_(.+?)(?:-(\d+))?(\.\w+)", path.name)
        if flat:  # whoever has handed in a file of another name has a row, too
            its = found.setdefault(flat[1], Student(flat[1]))
            if flat[2] + flat[4] in files:
                its.take(flat[2] + flat[4], path, int(flat[3] or 0))
    return [found[name] for name in sorted(found)]


def cell(text):
    """A text that a spreadsheet takes for a text, not for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t") else text


def result_name(name):
    """The name of a student's results: a folder's name with .json may be too long."""
    text = name if len(name.encode()) < 250 else \
        f"{name[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return f"{text}.json"


def stay_apart(cores):
    """Keep this process of a pool on a core of its own."""
    number = multiprocessing.current_process()._identity[0]
    os.sched_setaffinity(0, {cores[number % len(cores)]})


def pool(jobs):
    cores = sorted(os.sched_getaffinity(0))
    return concurrent.futures.ProcessPoolExecutor(
        jobs, multiprocessing.get_context("fork"), stay_apart, (cores,))


def why(rows, refused):
    """One line: the compiler's first error, or the first test that failed."""
    if refused:
        lines = refused.splitlines()
        errors = [line for line in lines if "error" in line]
        return " ".join([lines[0]] + errors[:1])
    return next((f"{row.test['name']}: {row.result.said}" for row in rows
                 if row.result and not row.passed), "")


def break_points(builder, tests, path):
    """(points, note) of a wrong.c: exactly the test that its first line names finds it."""
    if not path:
        return 0, "no wrong.c"
    try:
        named = re.match(rb"\s*//\s*(\w+)", build.handed_in(path))
        name = named[1].decode(errors="replace") if named else ""
        if name not in [test["name"] for test in tests]:
            return 0, "wrong.c: its first line names no test"
        with tempfile.TemporaryDirectory() as folder:
            program, _ = builder.build(path, folder)
            rows = score.run_tests(program, tests, every=True)
    except build.Refused as e:
        return 0, f"wrong.c: {str(e).splitlines()[0]}"
    found = [row.test["name"] for row in score.found_by(rows)]
    if found == [name]:
        return 10, ""
    return 0, f"wrong.c: {', '.join(found) or 'no test'} finds it, not {name} alone"


def grade_student(its, builder, about, student, seed):
    """(row of the table, contents of RESULTS/NAME.json)."""
    path, rows, refused = student.paths.get(its.file), [], ""
    tests = about["tests"]
    try:
        if not path:
            raise build.Refused(f"{its.file} is not there")
        rows, _ = score.grade_file(builder, tests, path, seed=seed)
    except build.Refused as e:
        refused = str(e)
    rows = rows or score.no_rows(tests)
    broken, note = break_points(builder, tests, student.paths.get("wrong.c"))
    points = [row.points for row in rows]
    notes = "; ".join(text for text in (why(rows, refused), note) if text)
    return [cell(student.name), sum(points), *points, broken,
            cell(score.visible(notes))], \
        score.gradescope(about, rows, refused, path)


def known(path, head):
    """The names in a table that an earlier run has begun. Raises Refused if it is another
    table."""
    if not path.exists() or not path.stat().st_size:
        return set()
    with open(path, newline="", encoding="utf-8", errors="backslashreplace") as f:
        rows = list(csv.reader(f))
    if rows[0] != head:
        raise build.Refused(f"{path} is another table; try: another --csv")
    if not path.read_bytes().endswith(b"\n"):
        raise build.Refused(f"{path} ends within a row; try: remove its last line")
    return {row[0] for row in rows[1:]}


def put(f, row):
    """Write a row, so that it survives whatever comes next."""
    csv.writer(f).writerow(row)
    f.flush()
    os.fsync(f.fileno())


def write_similar(its, todo, path, last):
    """The table of similar files. `last`: a folder like DIR of another term, or None."""
    others = {name: its.folder / name for name in ("reference.c", "second.c")
              if (its.folder / name).exists()}
    for student in students(last, [its.file]) if last else []:
        if its.file in student.paths:
            others[f"last term: {student.name}"] = student.paths[its.file]
    mine = {s.name: s.paths[its.file] for s in todo if its.file in s.paths}
    with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as f:
        table = csv.writer(f)
        table.writerow(["name", "is like", "share"])
        table.writerows([cell(a), cell(b), part]
                        for a, b, part in similar.rows(its, mine, others))


def run(its, builder, about, args):
    """Grade every student of args.batch. Return 0, or 2 if one could not be graded."""
    path = pathlib.Path(args.csv)
    names = [test["name"] for test in about["tests"]]
    head = ["name", "points", *names, "break", "note"]
    done = known(path, head)
    every = students(args.batch, [its.file, "wrong.c"])
    results = path.with_suffix(".results")
    failed = 0
    with open(path, "a", newline="", encoding="utf-8", errors="backslashreplace") as f:
        results.mkdir(exist_ok=True)
        builder.judge(), builder.around()
        if not done and not path.stat().st_size:
            put(f, head)
        with pool(args.jobs) as workers:
            under_way = {
                workers.submit(grade_student, its, builder, about, s, args.seed): s
                for s in every if cell(s.name) not in done}
            for one in concurrent.futures.as_completed(under_way):
                name = under_way[one].name
                try:
                    row, result = one.result()
                    (results / result_name(name)).write_text(
                        json.dumps(result, indent=1) + "\n")
                except Exception as e:  # one student's files end no batch
                    print(f"{name:<24} not graded: {type(e).__name__}: {e}; try: the same "
                          "command again")
                    failed = 2
                    continue
                put(f, row)
                print(f"{name:<24} {row[1]:2}  {row[-1]}", flush=True)
    write_similar(its, every, path.with_suffix(".similar.csv"), args.last)
    return failed
