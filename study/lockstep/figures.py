"""Draws figures: prepares DIR/figures/NAME.csv and lets gnuplot draw it with
plots/NAME.gp, as an SVG for the report and a PNG for all other uses.

    names()                 every figure, with its description
    check("loss memory")    whether they exist
    draw(study, "loss")     one figure of a study
    draw_folder(DIR, ..)    one of a folder that has no run: law, scale ..
    draw_all(study)         all that the experiment asks for

The script's folder may be another one: LOCKSTEP_PLOTS in the environment.
"""

import math
import os
import re
import shutil
import subprocess
import tempfile

from . import prepare_files, prepare_lines  # noqa: F401, it registers its figures
from .drawing import FIGURES, Drawing
from .files import Error, make_folder, read_text, reason, replace, visible, write_csv
from .places import share
from .prepare import own

DEADLINE = 120  # seconds for one picture
KINDS = ("svg", "png")
HINT = "try: a name from lockstep report --help"


def _plots():
    own = os.environ.get("LOCKSTEP_PLOTS")
    if own and not os.path.isdir(own):
        raise Error(f"LOCKSTEP_PLOTS={visible(own)}: no such folder")
    return os.path.abspath(own or share("plots"))


def _scripts():
    """{name: text} of all scripts, and the set of those that others load."""
    try:
        files = sorted(f for f in os.listdir(_plots()) if f.endswith(".gp"))
    except OSError as e:
        raise Error(f"{visible(_plots())}: {e.strerror}") from None
    texts = {f[:-3]: read_text(os.path.join(_plots(), f), follow=True) for f in files}
    parts = {name for text in texts.values()
             for name in re.findall(r'^\s*load "(\w+)\.gp"', text, re.M)}
    return texts, parts


def names():
    """(name, description) of every figure. A script begins with a comment, "NAME.gp -
    description", that ends at a colon, a full stop or with the comment."""
    found = []
    texts, parts = _scripts()
    for name, text in texts.items():
        head = re.match(r"# [\w./]+\.gp - ((?:.*\n)(?:# .*\n)*)", text)
        if head and name not in parts:
            words = " ".join(head[1].replace("\n#", " ").split())
            found.append((name, re.split(r":|\.(?: |$)", words)[0]))
    return found


def check(wanted, key="figures"):
    """Raises an Error that begins with the key unless all names of a text, or "none",
    are those of figures; with another key than figures the text is one name."""
    texts, parts = _scripts()
    several = key == "figures"
    for name in wanted.replace(",", " ").split() if several else [wanted]:
        if name in parts:
            raise Error(f"{key}={name}: {name}.gp is only a part of other figures; {HINT}")
        if name not in texts and not (several and name == "none"):
            raise Error(f"{key}={visible(name)}: no such figure; {HINT}")


def _check_size(size):
    wide, _, high = size.partition("x")
    if size and not (re.fullmatch("[0-9]{1,5}x[0-9]{1,5}", size) and
                     200 <= int(wide) <= 20000 and 100 <= int(high) <= 20000):
        raise Error(f"size={visible(size)}: must be WIDTHxHEIGHT in pixels, 200x100 to "
                    "20000x20000; try: size=1600x900")


def _value(value):
    """A value as gnuplot reads it. Nothing is special in a text between single quotes
    but the quote itself. Doubled it could not begin a text, so it becomes an
    apostrophe."""
    if isinstance(value, str):
        return "'" + visible(value).replace("'", "\u2019") + "'"
    return repr(value) if isinstance(value, float) and math.isfinite(value) else \
        str(int(value)) if isinstance(value, int) else "NaN"


def _words(about):
    """The variables of a script as words of gnuplot's command line."""
    for name, value in about.items():
        if isinstance(value, (list, tuple)):
            value = list(value) or [0]
            yield from ("-e", f"array {name}[{len(value)}] = "
                              f"[{', '.join(map(_value, value))}]")
        else:
            yield from ("-e", f"{name} = {_value(value)}")


def gnuplot(name, drawing, folder, size=""):
    """Draws folder/NAME.csv as NAME.svg and .png in the same folder. Returns what
    gnuplot says."""
    said = ""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GNUPLOT")}
    for kind in KINDS:
        out = os.path.join(folder, f"{name}.{kind}")
        about = {"FILE": os.path.join(folder, f"{name}.csv"), "OUT": out,
                 **({"SIZE": size} if size else {}), **drawing.about}
        try:
            done = subprocess.run(
                ["gnuplot", "-d", *_words(about), f"{name}.gp"], cwd=_plots(),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=DEADLINE, check=False,
                env={**environment, "LC_ALL": "C.UTF-8"})
        except FileNotFoundError:
            raise Error("gnuplot: not found; try: ./install") from None
        except subprocess.TimeoutExpired:
            raise Error(f"gnuplot took more than {DEADLINE} s") from None
        except OSError as e:
            raise Error(f"gnuplot: {e.strerror}") from None
        said += done.stdout.decode("utf-8", "replace")
        if done.returncode or not os.path.exists(out) or not os.path.getsize(out):
            lines = [s for s in map(str.strip, said.splitlines()) if s and s != "^"]
            raise Error(f"gnuplot failed ({done.returncode}): "
                        f"{visible('; '.join(lines[-2:]))[:400]}")
    return said


def _draw(prepare, out, name, size):
    _check_size(size)
    check(name, "figure")
    try:
        drawing = prepare()
        with tempfile.TemporaryDirectory(prefix="lockstep-figure-") as folder:
            write_csv(os.path.join(folder, f"{name}.csv"), drawing.rows)
            gnuplot(name, drawing, folder, size)
            to = make_folder(out, "figures")
            paths = [os.path.join(to, f"{name}.{kind}") for kind in ("csv", *KINDS)]
            for path in paths:
                with replace(path) as temporary:
                    shutil.copyfile(os.path.join(folder, os.path.basename(path)),
                                    temporary)
    except OSError as e:
        raise Error(f"{name}: {reason(e)}") from None
    except Error as e:
        raise Error(f"{name}: {e}") from None
    return paths[1:]


def draw(study, name, size="", step=None):
    """Draws a figure of a study and returns its paths. `step` is that of `pipeline`."""
    def prepare() -> Drawing:
        study.need_runs()
        if name == "pipeline":
            return prepare_files.pipeline_of(study, step)
        if name in prepare_files.FIGURES:
            return prepare_files.FIGURES[name](study.out)
        return FIGURES.get(name, own)(study)
    return _draw(prepare, study.to, name, size)


def draw_folder(folder, name, size="", to=""):
    """The same for a folder without runs, which has the file that the figure shows. It
    is drawn into the folder `to`, if given."""
    def prepare() -> Drawing:
        if name not in prepare_files.FIGURES:
            raise Error(f"{visible(folder)} is neither an experiment nor a run; it has no "
                        "command.txt and no run.json")
        return prepare_files.FIGURES[name](folder)
    return _draw(prepare, to or folder, name, size)


def draw_all(study):
    """Draws what the experiment asks for, and its GPUs if it has any. Returns the names
    of figures that were drawn, and a line for each of the others."""
    wanted = study.experiment.figures.replace(",", " ").split()
    if "none" in wanted:
        return [], []
    if study.gpus and "gpu_timeline" not in wanted:
        wanted.append("gpu_timeline")
    drawn, errors = [], []
    for name in dict.fromkeys(wanted):
        try:
            draw(study, name)
            drawn.append(name)
        except Error as e:
            errors.append(str(e))
    return drawn, errors
