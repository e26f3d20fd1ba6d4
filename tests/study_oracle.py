"""An oracle of the commands report and compare: computes every number again.

    study_oracle.py LOCKSTEP [KEPT]

Eight experiments run, and copies of them get other numbers in their raw files. For
each, this test computes every cell of every table, the numbers and names of every
sentence, and the verdict of compare, from run.json, summary.json, steps.csv,
breakdown.csv, util.csv and the INI alone. With KEPT the experiments and copies stay
there, for tests/study_mutants.py and for a second look.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import study_cases
from study_oracle_answer import answer_is
from study_oracle_compare import verdict_is
from study_oracle_figures import figures_are
from study_oracle_page import page_is
from study_oracle_runs import Study
from study_oracle_tables import TABLES, tables_are

SOURCE = pathlib.Path(__file__).resolve().parent.parent


def called(command, *words):
    return subprocess.run([*command, *map(str, words)], capture_output=True,
                          text=True, timeout=250)


def study_is(study, command):
    """report and compare say of a study what its raw files say."""
    for name in TABLES:  # none of before may stay
        (study.folder / name).write_text("cell\nof before\n")
    shutil.rmtree(study.folder / "figures", ignore_errors=True)
    done = called(command, "report", study.folder)
    assert done.returncode == 0, (study.folder, done.stdout, done.stderr)
    tables_are(study)
    table, *_, said, path = done.stdout.split("\n\n")
    assert (study.folder / "table.txt").read_text() in done.stdout, done.stdout
    assert path == f"report: {study.folder / 'report.html'}\n", path
    answer_is(study, said)
    page_is(study)
    figures_are(study)
    done = called(command, "compare", study.folder)
    verdict_is(study, done.stdout, done.returncode)
    assert done.stdout.strip() in (study.folder / "report.html").read_text() \
        .replace("&#39;", "'") or len(study.runs) == 1, study.folder


def kept_in(folder):
    """The experiments of a folder."""
    return sorted(p.parent for p in folder.glob("*/command.txt"))


def check(folder, command):
    """All experiments of a folder."""
    for path in kept_in(folder):
        try:
            study_is(Study(path), command)
        except AssertionError:
            print(f"study_oracle: {path.name}", file=sys.stderr)
            raise


def joined(folder, command):
    """Runs of different cells, side by side."""
    a, b = (folder / "repeats/cells" / c / "r2" for c in ("ring", "zero"))
    done = called(command, "report", a, b, a, f"out={folder / 'joined'}")
    assert done.returncode == 0, done.stderr
    study = Study(folder / "joined")
    assert [c.name for c in study.planned] == ["ring_r2", "zero_r2", "ring_r2_3"]
    assert [c.name for c in study.cells] == ["ring_r2", "zero_r2"]
    study_is(study, command)


def make(folder, command):
    """Runs the experiments, and copies them."""
    (folder / "runs").mkdir(parents=True)
    (folder / "copies").mkdir()
    study_cases.run_all(command, SOURCE, folder / "runs")
    study_cases.rewritten(folder / "runs", folder / "copies")


def main():
    command = [str(pathlib.Path(sys.argv[1]).resolve())]
    with tempfile.TemporaryDirectory(prefix="lockstep-oracle-") as name:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else name)
        folder = folder.resolve() / "kept"
        shutil.rmtree(folder, ignore_errors=True)
        make(folder, command)
        check(folder / "runs", command)
        check(folder / "copies", command)
        joined(folder / "runs", command)
    print("ok")


if __name__ == "__main__":
    main()
