"""The commands that the program `lockstep` leaves to this package. The text of a
function is the help of its command. A command imports what only some commands need:
Python takes longer for these modules than many commands do.
"""

import codecs
import importlib
import io
import locale
import os
import resource
import signal
import subprocess
import sys

from .files import Error, number, reason, visible, whole
from .places import needed


def _more_help(command):
    """Lines that the help of a command ends with: the figures that it knows; what the
    program lockstep adds."""
    if command in ("run", "report"):
        from . import figures
        yield from ("", "Figures:", *(f"  {n:16} {about}" for n, about in figures.names()))
    elif command == "explain":
        yield from ("", _explain_way())


def _help(command):
    import inspect
    return "\n".join((inspect.getdoc(COMMANDS[command]), *_more_help(command), ""))


def log(line):
    """A line for the user, beside the output."""
    print(visible(line), file=sys.stderr, flush=True)


def _explain_way():
    return subprocess.run([needed("explain_way"), "--help"], stdout=subprocess.PIPE,
                          text=True, check=True, timeout=60).stdout


def _take(words, *keys):
    """(the words without key=, {key: value})."""
    found, rest = dict.fromkeys(keys, ""), []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in found:
            found[key] = value
        else:
            rest.append(word)
    return rest, found


def run(words):
    """lockstep run FILE.ini [out=DIR] [repeat=N] [fresh=1] [key=value] ...

    Runs every cell of the experiment repeat= times, then writes tables, figures and a
    report to DIR (default: runs/NAME). A word of the command line replaces a setting
    of [base] or a list of [matrix]. After an interruption the same command continues:
    finished runs of the same settings are kept. If DIR has runs of other settings, data
    or builds, it stops and names the difference; fresh=1 first removes all runs that
    DIR has, and their tables and figures.
      lockstep run experiments/study.ini
      lockstep run experiments/study.ini workers=4 batch=8 repeat=1 out=runs/p4

    An INI file:
      [experiment]
      title, question, expect      text for the report
      figures = throughput ..      names from the list below, or none
      repeat = 3                   runs of each cell
      baseline = CELL              the cell to compare others with
      only = ring                  run the cells whose [cell NAME] begins with this
      target_loss = auto           report the seconds to this loss; auto: the least loss
                                   that all cells reach
      [base]                       settings of all cells, key = value
      [matrix]                     every combination of these values
      batch = 8, 16
      size = workers=1 batch=16, workers=2 batch=8    several keys at once
      size = batch=2 (steps=160), batch=4 (steps=80)  names of cells omit words in ()
      [cell NAME]                  combined with each of these cells
      sync = ring
      peer = ddp                   PyTorch's DDP trains this cell, if python3 has it
    peer_python= (another python3 for peer = ddp), lab= and hosts= are accepted only as
    words of the command line: they start what an INI file from others must not choose.
    """
    from .page import finish
    from .runner import Stopped, run_experiment
    (ini, *rest), own = _take(words, "out", "fresh")
    if own["fresh"] not in ("", "0", "1"):
        raise Error(f"fresh={visible(own['fresh'])}: must be 0 or 1")

    def stop(number, _):
        raise Stopped(number)
    _on_signals(stop, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    try:
        study, failed = run_experiment(ini, rest, own["out"], own["fresh"] == "1")
        print(finish(study, log))
    except Stopped as why:
        log(f"stopped; the same command{' without fresh=1' * (own['fresh'] == '1')} "
            "continues from here")
        return 128 + why.number
    if failed:
        raise Error(f"{failed} runs failed; try: read their logs in "
                    f"{visible(study.out)}/cells/*/*.txt")
    return 0


def _study(folders, out):
    """The study of one folder or of several runs, which writes into `out`, if given."""
    from .study import Study, join
    if len(folders) > 1:
        return join(folders, out)
    study = Study(folders[0])
    if out:
        study.write_to(out)
    return study


def _draw(folders, out, figure, size, step):
    """Draws one figure of a study, or of a folder that has its file and no run."""
    from . import figures
    from .tables import write_tables
    figures.check(figure, "figure")
    if step and whole(step, 0, 1 << 53) is None:
        raise Error(f"step={visible(step)}: must be a number of a step")
    kept = any(os.path.lexists(os.path.join(folders[0], name))
               for name in ("run.json", "command.txt"))
    if len(folders) == 1 and not kept:
        return figures.draw_folder(folders[0], figure, size, out)
    study = _study(folders, out)
    write_tables(study)
    return figures.draw(study, figure, size, whole(step, 0, 1 << 53))


def report(words):
    """lockstep report DIR [out=DIR] [figure=NAME] [size=WIDTHxHEIGHT]
    lockstep report RUN RUN .. out=DIR

    Writes tables, figures and report.html to DIR, the folder of one run or of an
    experiment, finished or not; with out= to another folder. With figure= it draws only
    that figure, in the size given in pixels; figure=pipeline shows step=N of a run. For
    figure=law, size_sweep, scale or pipeline DIR may also be a folder with sweep.txt,
    simulate.csv or timetable.csv. With several runs it makes a new folder out=DIR, and
    treats each run as a cell of an experiment.
      lockstep report runs/study figure=throughput size=1600x900
      lockstep report runs/a runs/b out=runs/both
    """
    from .page import finish
    folders, own = _take(words, "out", "figure", "size", "step")
    if not folders:
        raise Error("report: the folder is missing; try: lockstep report --help")
    for word in folders:
        if "=" in word and not os.path.lexists(word):
            raise Error(f"report: {visible(word)}: no such folder, and report takes only "
                        "out=, figure=, size= and step=; try: lockstep report --help")
    if own["size"] and not own["figure"]:
        raise Error("size= requires figure=; try: figure=NAME")
    if len(folders) > 1 and not own["out"]:
        raise Error(f"report: {len(folders)} runs require a new folder for their report; "
                    "try: out=DIR")
    if own["figure"]:
        print("\n".join(map(visible, _draw(folders, **own))))
        return 0
    print(finish(_study(folders, own["out"]), log))
    return 0


def compare(words):
    """lockstep compare DIR

    Checks that all runs of an experiment trained the same thing. The runs must have
    the same data. Runs with the same batch, learning rate, number formats and so on
    must also have the same losses, within rounding. The exit status is 1 if not.
    """
    from .study import Study
    if len(words) > 1:
        raise Error(f"compare: takes one folder, not also {visible(words[1])}; to compare "
                    f"runs, try: lockstep report {visible(' '.join(words))} out=DIR")
    study = Study(words[0])
    study.need_runs()
    verdict = study.compare()
    print(verdict)
    return 1 if verdict.different else 0


def verify(words):
    """lockstep verify RUN

    Reads what a run left, and says what it proves: every step of every rank is there
    once, summary.json has the sums of steps.csv, checkpoints are whole, and their
    weights give the validation losses that the run recorded. Each line begins with ok,
    WRONG, or -- for what cannot be proved. The exit status is 1 if something is wrong.
      lockstep verify runs/a
    """
    from . import verify as checks
    if len(words) > 1:
        raise Error(f"verify: takes one run, not also {visible(words[1])}")
    wrong = 0
    for finding in checks.verify(words[0]):
        print(finding, flush=True)
        wrong += finding.mark == checks.WRONG
    return 1 if wrong else 0


def explain(words):
    """lockstep explain RUN [RUN ..] [step=N] [out=explain.html] [svg=FILE]

    Writes an HTML page that plays one step of each run on one clock, from their traces.
    It shows which worker computes or sends, which communication is hidden behind
    computing, and the bytes sent so far beside the law's. It replaces an old file.
      step=N      the step to show; without it the one of median length
      out=FILE    the page (explain.html)
      svg=FILE    write an animated picture, too
    """
    from . import explain as pages
    if not os.path.lexists(os.path.join(words[0], "run.json")):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
        os.execv(needed("explain_way"), ["explain_way", *words])
    folders = []
    while words and not words[0].startswith(("step=", "out=", "svg=")):
        folders.append(words.pop(0))
    rest, own = _take(words, "step", "out", "svg")
    for path in pages.explain(folders + rest, **own):
        print(visible(path))
    return 0


def watch(words):
    """lockstep watch DIR [every=S] [times=N]

    Shows what every worker does now. DIR is the folder of a run, or of an experiment:
    then it shows the latest run. A - means that a value is not measured, or not yet.
    It ends with the run, or when nothing came for 90 s.
      every=S     seconds between two updates (1)
      times=N     after so many updates it ends; without it with the run
    """
    from .watch import watch as show
    (folder, *rest), own = _take(words, "every", "times")
    every = number(own["every"] or 1)
    times = whole(own["times"] or 0, 0, 1 << 53)
    if rest:
        raise Error(f"watch: unknown key {visible(rest[0])}; try: every= or times=")
    if every is None or not .05 <= every <= 3600:
        raise Error(f"every={visible(own['every'])}: must be 0.05 .. 3600 seconds")
    if times is None:
        raise Error(f"times={visible(own['times'])}: must be a number of updates")
    show(folder, every, times)
    return 0


# Commands of a module of their own, which has NAME(words) and explain().
MODULES = "predict", "fit", "simulate", "doctor", "man", "completion"
COMMANDS = {command.__name__: command for command in (run, report, compare, verify, explain,
                                                     watch)}


def find(name):
    """(the function of a command, what it says for --help)."""
    if name in MODULES:
        module = importlib.import_module(f".{name}", __package__)
        return getattr(module, name), module.explain
    return COMMANDS[name], lambda: _help(name)


def _limit_memory():
    """A folder from a stranger may have files of any size. They may fill half of the
    memory."""
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if most == resource.RLIM_INFINITY or half < most:
        resource.setrlimit(resource.RLIMIT_DATA, (half, most))


def _on_signals(do, *numbers):
    """Does this at these signals, but for those that nohup has made ignored."""
    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, do)


def _end(number, _):
    """Ends as Ctrl-C does: jobs that were started end, and temporary folders go."""
    sys.exit(128 + number)


class _Output(io.FileIO):
    """Standard output, which keeps the reason why it could not be written: Python may
    forget it with the text."""
    error = None

    def write(self, data):
        try:
            return super().write(data)
        except OSError as why:
            self.error = why
            raise


def _output_ends():
    """Whether what was printed is written. If not, says why, and forgets it: Python
    would try again, and complain, when it ends. If nobody reads any more, ends as
    programs do that do not ignore SIGPIPE, as Python does."""
    why = None
    try:
        sys.stdout.flush()
    except OSError as failed:
        why = failed
    why = sys.stdout.buffer.raw.error or why
    if why:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(why, BrokenPipeError):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    if why:
        log(f"lockstep: stdout: {why.strerror}")
    sys.stdout.buffer.raw.error = None  # it is said once
    return not why


def main():
    """Runs the command that the program's words name. Returns the exit status."""
    name, *words = sys.argv[1:]
    terminal = locale.getencoding()  # not of files, which are UTF-8
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Output(1, "w", closefd=False)),
                                  line_buffering=sys.stdout.isatty())
    for stream in sys.stdout, sys.stderr:
        stream.reconfigure(errors="replace", encoding=terminal if codecs.lookup(
            terminal).name != "ascii" else "utf-8")
    if name in COMMANDS and name != "run":  # the trainers are its children
        _limit_memory()
    command, explanation = find(name)
    _on_signals(_end, signal.SIGTERM, signal.SIGHUP)
    try:
        if words == ["--help"]:
            print(explanation(), end="")
            status = 0
        else:
            status = command(words)
        return status if _output_ends() else 1
    except Error as why:
        log(f"lockstep: {why}")
    except KeyboardInterrupt:
        return 130
    except MemoryError:
        log(f"lockstep: {name}: the files need more than half of the memory")
    except (OSError, RecursionError) as why:
        if _output_ends():
            log(f"lockstep: {getattr(why, 'filename', None) or name}: {reason(why)}")
    _output_ends()
    return 1
