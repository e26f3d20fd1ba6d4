"""score.py - the points of one file: its tests, one after the other, and results.json."""

import argparse
import hashlib
import re
import tempfile

from . import build, page, run


def visible(text):
    """A student's text as a terminal may show it: it could move the cursor, or hide lines."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda m: f"\\x{ord(m[0]):02x}", text)


class Row:
    """One test and its result. result is None if the test was left out because the test
    `missing`, which it needs, failed."""

    def __init__(self, test, result, missing=None):
        self.test, self.result, self.missing = test, result, missing
        self.passed = result is not None and result.passed
        self.points = int(test["points"] * result.part) if result else 0


def keep_trace(trace, name, said):
    """Make a page of the trace that a test has left, or log-NAME.txt of its text."""
    with open(trace, "rb") as f:
        first = f.read(1)
    if not first:
        trace.unlink()
    elif first == b"{":
        page.write(trace, f"{name} fails", said)
    else:
        trace.rename(trace.with_name(f"log-{name}.txt"))


def run_tests(program, tests, out=None, stop=False, only=None, every=False, seed=0):
    """Run the tests, and return a row for each. `stop`: stop after the first failure.
    `every`: also run tests that need a test that failed. `only`: run this test alone.
    `seed`: draws hidden cases; 0: there are none."""
    rows, failed = [], set()
    for test in tests:
        name = test["name"]
        if only and name != only:
            continue
        if test["needs"] in failed and not only and not every:
            failed.add(name)
            rows.append(Row(test, None, test["needs"]))
            continue
        trace = out / f"timeline-{name}.json" if out else None
        result = run.run_test(program, name, trace, out / "run.csv" if out else None,
                              seed)
        if trace:
            keep_trace(trace, name, result.said)
        rows.append(Row(test, result))
        if not result.passed:
            failed.add(name)
            if stop:
                break
    return rows


def points_of(rows):
    return sum(row.points for row in rows), sum(row.test["points"] for row in rows)


def grade_file(builder, tests, path, out=None, only=None, seed=0):
    """The rows of one file, and the compiler's warnings. Raises Refused if the file cannot
    be built."""
    with tempfile.TemporaryDirectory() as folder:
        program, warnings = builder.build(path, folder)
        rows = run_tests(program, tests, out, only=only, seed=seed)
    return rows, warnings


def no_rows(tests):
    """The rows of a file that cannot be graded."""
    return [Row(test, None, "a file that compiles") for test in tests]


def digest_of(path):
    try:
        return hashlib.sha256(build.handed_in(path or "")).hexdigest()
    except build.Refused:
        return ""


def gradescope(about, rows, said, path):
    """The contents of results.json, with the fields of Gradescope's specification."""
    tests = [{"number": str(i), "name": row.test["name"], "score": row.points,
              "max_score": row.test["points"], "visibility": "visible",
              "output": f"needs: {row.missing}" if row.result is None
                        else row.result.said}
             for i, row in enumerate(rows, 1)]
    return {"score": sum(row.points for row in rows),
            "execution_time": round(sum(row.result.seconds for row in rows
                                        if row.result)),
            "stdout_visibility": "hidden", "output": said,
            "extra_data": {"lab": about["number"], "file": about["file"],
                           "sha256": digest_of(path), "filter": about["filter"]},
            "tests": tests}


def found_by(rows):
    """The rows of the tests that the file fails."""
    return [row for row in rows if row.result and not row.passed]


def seed_of(text):
    """A seed: 1 .. 2^63-1, so that nobody finds it by trying."""
    if not text.isdigit() or not 0 < int(text) < 1 << 63:
        raise argparse.ArgumentTypeError(f"{text} is no number from 1 to 2^63-1")
    return int(text)
