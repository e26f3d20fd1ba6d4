"""Every measure of a run, once: its name with the unit, its formula, and the runs
that it may be taken over.

A measure is a function of a Run that returns a number, or None where it has no
meaning or was not measured. Tables, figures, sentences and pandas all call it.
To add one:

    @lockstep.measure("stalls_per_step", "stalls a step")
    def stalls(run):
        "Mean of the column `stalls` of steps.csv, which only mesh=pp runs have."
        return lockstep.mean(run.column("stalls"))
"""

import dataclasses
import difflib
import typing

from .files import Error, number, visible
from .runs import mean, most

MIB = 1048576.0


@dataclasses.dataclass(frozen=True)
class Measure:
    """A column of runs.csv and table.csv."""
    name: str  # of the column, with the unit
    label: str  # for people
    of: typing.Callable  # of a Run: a number or None
    less: bool  # whether less is better
    scale: float  # for people: a label's unit over the column's
    form: str  # for people: "%", or digits as Python writes them; "": four digits

    @property
    def formula(self):
        """What it is, in words."""
        return " ".join((self.of.__doc__ or "").split())

    def text(self, value):
        """A value for people."""
        if value is None:
            return "-"
        if self.form == "%":
            return f"{100 * value:.0f}%"
        value *= self.scale
        return f"{value:{self.form or ('.0f' if abs(value) >= 1000 else '.4g')}}"

    def text_of(self, found):
        """(the median of a Range, its ends or "") for people."""
        return self.text(found.median), \
            f"{self.text(found.least)} .. {self.text(found.most)}" if found.wide else ""


MEASURES = {}  # in the order of the tables' columns


def measure(name, label="", less=False, scale=1.0, form=""):
    """Registers a function of a Run as a measure."""
    def add(function):
        MEASURES[name] = Measure(name, label or name, function, less, scale, form)
        return function
    return add


def measure_of(name):
    """The measure with a name that a person may have typed."""
    if name not in MEASURES:
        near = difflib.get_close_matches(name, MEASURES, 1)
        raise Error(f"no measure {visible(name)}" + (
            f"; nearest: {near[0]}" if near else "; try: list(lockstep.MEASURES)"))
    return MEASURES[name]


@measure("tokens_per_s", "tokens/s")
def tokens_per_s(run):
    """The tokens that a step trained on, of all workers, mean of the steps, divided by
    the time of the median step, without evaluation and checkpoints. A gradient that was
    dropped, and a step that was skipped, trained on none."""
    step, trained = run.step_s, tokens(run)
    return trained / run.steps / step if step and trained is not None else None


@measure("step_s", "step ms", less=True, scale=1e3)
def step_s(run):
    """The time of the median step. Steps between two exchanges count as one, with
    their mean time."""
    return run.step_s


@measure("timed_steps", "steps timed")
def timed_steps(run):
    """The number of steps that the median step is one of, the least of any worker."""
    return run.timed_steps


@measure("seconds", "seconds", less=True)
def seconds(run):
    """The time of training, with evaluation and checkpoints; steps that were done
    again count once."""
    return most(run.column("time_s"))


def _learned(run):
    """A run that slept instead of computing has no loss."""
    return run.curve and not run.pace


@measure("train_loss_nats", "training loss", less=True)
def train_loss(run):
    """The training loss of the last step, mean of the workers, each on its own
    batch."""
    return run.curve[-1].loss if _learned(run) else None


@measure("val_loss_nats", "validation loss", less=True)
def val_loss(run):
    """The last validation loss, mean of the workers."""
    found = [p.val_loss for p in run.curve if p.val_loss is not None]
    return found[-1] if found and _learned(run) else None


@measure("utilisation_total", "utilisation, all workers", form="%")
def utilisation_total(run):
    """The share of a worker's time in forward, backward and update (with a GPU: in
    which the GPU computes), added up over the workers. Evaluation and checkpoints do
    not count."""
    shares = run.utilisation
    return sum(shares) if shares and None not in shares else None


@measure("utilisation_mean", "utilisation, mean", form="%")
def utilisation_mean(run):
    """utilisation_total divided by the number of workers."""
    total = utilisation_total(run)
    return None if total is None else total / run.world


@measure("cpu_share_mean", "CPU share, mean", form="%")
def cpu_share(run):
    """Processor time of a worker over the time times its cores, mean of all
    samples."""
    return run.samples["cpu_share"]


def _of_step(run, kind):
    """Seconds of the median step in a kind of work: its share of the steps' time,
    mean of the workers, times the median step. A rare long step does not change it.
    None if a worker has a GPU and its shares do not have this kind."""
    shares = run.shares
    if not shares or None in shares or run.step_s is None or \
            any(kind not in s for s in shares):
        return None
    return mean([s[kind] for s in shares]) * run.step_s


@measure("computing_s_per_step", "computing ms a step", scale=1e3)
def computing(run):
    """Time of the median step in which a worker computes: utilisation_mean times the
    median step."""
    share = utilisation_mean(run)
    return share * run.step_s if share is not None and run.step_s else None


@measure("data_s_per_step", "data ms a step", less=True, scale=1e3)
def data_time(run):
    """Time of the median step in which a worker waits for its batch, mean of the
    workers; not for workers with a GPU."""
    return _of_step(run, "data")


@measure("other_s_per_step", "other ms a step", less=True, scale=1e3)
def other_time(run):
    """Time of the median step that no other kind has, mean of the workers; not for
    workers with a GPU."""
    return _of_step(run, "other")


@measure("exposed_s_per_step", "exposed ms a step", less=True, scale=1e3)
def exposed(run):
    """Time of the median step in which a worker moves bytes and does not compute,
    mean of the workers."""
    return _of_step(run, "exposed")


@measure("wait_s_per_step", "waiting ms a step", less=True, scale=1e3)
def wait(run):
    """Time of the median step in which a worker moves no bytes and does not compute,
    because others are late; mean of the workers."""
    return _of_step(run, "wait")


def _parts(run, of):
    """Into how many stages or slices the model was cut, or sequences into pieces."""
    return run.number(f"way.{of}") or 1


@measure("bubble_s_per_step", "waiting for stages, ms a step", less=True, scale=1e3)
def bubble_time(run):
    """Time of the median step in which a stage of a pipeline waits for other stages and
    their messages, mean of the workers."""
    return _of_step(run, "bubble") if _parts(run, "stages") > 1 else None


@measure("join_s_per_step", "waiting for slices or pieces, ms a step", less=True,
         scale=1e3)
def join_time(run):
    """Time of the median step in which a worker waits for the sums of the slices of its
    model, or for the other pieces of its sequences, also while it sends and receives for
    them; mean of the workers."""
    cut = max(_parts(run, "slices"), _parts(run, "pieces"))
    return _of_step(run, "join") if cut > 1 else None


@measure("bytes_tx_per_worker_step", "bytes sent by a worker in a step", less=True)
def bytes_tx(run):
    """Payload that a worker sends in a step to agree on the next parameters, counted;
    mean of workers and steps. What stages, slices and pieces send is not in it."""
    return _sent(run, "bytes_tx")


def _sent(run, column):
    steps = len(run.curve)  # a run that was resumed elsewhere lacks the first ones
    return sum(run.column(column)) / steps / run.world if steps else None


@measure("stage_bytes_tx_per_worker_step", "bytes to other stages in a step", less=True)
def stage_bytes(run):
    """Payload that a worker sends to other stages in a step: activations and their
    gradients; mean of workers and steps."""
    return _sent(run, "stage_tx") if _parts(run, "stages") > 1 else None


@measure("slice_bytes_tx_per_worker_step", "bytes to other slices in a step", less=True)
def slice_bytes(run):
    """Payload that a worker sends to other slices in a step, for their sums; mean of
    workers and steps."""
    return _sent(run, "slice_tx") if _parts(run, "slices") > 1 else None


@measure("piece_bytes_tx_per_worker_step", "bytes for other pieces in a step", less=True)
def piece_bytes(run):
    """Payload that a worker sends in a step to workers that have other pieces of its
    sequences: keys, values and their gradients; mean of workers and steps."""
    return _sent(run, "piece_tx") if _parts(run, "pieces") > 1 else None


@measure("law_bytes_tx", "bytes by the law", less=True)
def law_bytes(run):
    """bytes_tx_per_worker_step by the law, as the trainer computed it from the
    settings."""
    return run.number("law.bytes_tx")


for _of, _to in (("stage", "to other stages"), ("slice", "to other slices"),
                 ("piece", "for other pieces")):
    def _law_of(run, of=_of):
        return run.number(f"law.{of}_tx")
    _law_of.__doc__ = f"{_of}_bytes_tx_per_worker_step by the law."
    measure(f"law_{_of}_bytes_tx", f"{_to} by the law", less=True)(_law_of)


@measure("bytes_rx_per_server_step", "bytes into a server in a step", less=True)
def bytes_server(run):
    """Payload into a server in a step. Only servers with a link of their own have it,
    not those beside a worker."""
    sent = bytes_tx(run)
    if not run.servers or run.get("way.beside") or sent is None:
        return None
    return sent * run.world / run.servers


@measure("law_exchange_s", "exchange by the law, ms", less=True, scale=1e3)
def law_exchange(run):
    """Seconds of an exchange alone on the emulated links, by the law. Without net=
    the links are not known."""
    return run.number("law.exchange_s")


@measure("lag_mean", "lag", less=True)
def lag(run):
    """Updates by others that the parameters of a gradient lack, mean of all steps of
    all workers."""
    return mean(run.column("lag"))


@measure("peak_memory_bytes", "worker, MiB", less=True, scale=1 / MIB)
def peak_memory(run):
    """The highest peak of memory of any worker."""
    return run.peak_bytes


@measure("restarts", "restarts", less=True)
def restarts(run):
    """How often the job, or a worker of an elastic job, was started again after a
    failure."""
    return max(run.column("restarts"), default=None)


@measure("steps_lost", "steps lost", less=True)
def steps_lost(run):
    """Steps that were done again after restarts, the most of any worker."""
    return max(run.column("steps_lost"), default=None)


@measure("seconds_lost", "seconds lost", less=True)
def seconds_lost(run):
    """The time of the steps that were done again. `seconds` does not include it."""
    return max(run.column("lost_s"), default=None)


@measure("server_peak_memory_bytes", "server, MiB", less=True, scale=1 / MIB)
def server_memory(run):
    """The highest peak of memory of any server."""
    return run.samples.get("server_bytes")


@measure("smooth_loss_nats", "training loss, least mean of ten steps", less=True)
def smooth_loss(run):
    """The least mean training loss of ten steps."""
    return min((p.smooth for p in run.curve if p.smooth is not None),
               default=None) if _learned(run) else None


@measure("best_val_loss_nats", "validation loss, best", less=True)
def best_val_loss(run):
    """The least validation loss of any step, mean of the workers."""
    return min((p.val_loss for p in run.curve if p.val_loss is not None),
               default=None) if _learned(run) else None


def _between_steps(run, kind):
    """Seconds of the whole run in a kind of work between steps, mean of the workers."""
    return mean([s[kind] for s in run.spent if s])


@measure("evaluate_s", "evaluating, s", less=True)
def evaluate_time(run):
    """Seconds of evaluation in the whole run, mean of the workers. No time of a step
    has them, but `seconds` does."""
    return _between_steps(run, "evaluate")


@measure("checkpoint_s", "saving, s", less=True)
def checkpoint_time(run):
    """The same of checkpoints: how long training stood still for them."""
    return _between_steps(run, "checkpoint")


@measure("tokens", "tokens")
def tokens(run):
    """Tokens that were trained on, of all workers."""
    return most(run.column("tokens"))


@measure("trained_share", "tokens trained on, share", form="%")
def trained_share(run):
    """tokens divided by those of all batches up to the last step. It is less than 1 if
    gradients were dropped, steps skipped, or workers dead."""
    trained, read = tokens(run), run.context * run.global_batch * run.steps
    return trained / read if run.curve and read and trained is not None else None


@measure("processor_taken_share", "processor taken", less=True, form="%")
def taken(run):
    """The share of a worker's computing time in which it had no processor; not for
    workers with a GPU, or that slept instead of computing."""
    return None if run.pace else run.samples["taken"]


@measure("involuntary_switches_per_s", "involuntary switches a second", less=True)
def switches(run):
    """How often a second the system took the processor from a worker, mean."""
    return run.samples["switches"]


@measure("gpu_util_share", "GPU, NVML", form="%")
def gpu_util(run):
    """Utilisation of the GPU as NVML reports it, mean of all samples."""
    return run.samples["gpu_util"]


@measure("gpu_peak_memory_bytes", "GPU MiB", less=True, scale=1 / MIB)
def gpu_memory(run):
    """The highest sample of a GPU's memory that all processes use together."""
    return run.samples.get("gpu_bytes")


@measure("gpu_power_w", "GPU W", less=True)
def gpu_power(run):
    """Power of a GPU, mean of all samples."""
    return run.samples["gpu_power"]


@measure("bubble_share", "bubble %", less=True, scale=100)
def bubble(run):
    """The share of a step in which a stage of a pipeline waits for other stages, mean
    of all stages."""
    if _parts(run, "stages") < 2:
        return None
    waits, whole = run.column("t_bubble_us"), sum(run.column("t_step_us"))
    return sum(waits) / whole if waits and whole else None


@measure("law_bubble_share", "law %", less=True, scale=100)
def law_bubble(run):
    """The same by the schedule alone, for equal stages."""
    return run.number("law.bubble_share")


def _timetable(run, key):
    found = run.summary.get("timetable")
    return number(found.get(key)) if isinstance(found, dict) else None


@measure("timetable_bubble_share", "timetable %", less=True, scale=100)
def timetable_bubble(run):
    """The same by the schedule with each stage's measured forward and backward, and
    no time for messages."""
    return _timetable(run, "bubble_share")


@measure("timetable_step_s", "timetable ms", less=True, scale=1e3)
def timetable_step(run):
    """The time of a step by that timetable. It is made from the times of all steps,
    and multiplied by the median step over the mean step."""
    mean_us, found = mean(run.column("t_step_us")), _timetable(run, "step_s")
    return found * run.step_s / (mean_us * 1e-6) if found and run.step_s else None


@measure("speedup", "speed-up", form=".2f")
def speedup(run):
    """tokens/s divided by those of the baseline's run of the same repeat."""
    base = run.study.baseline_run(run) if run.study else None
    mine, rate = tokens_per_s(run), base and tokens_per_s(base)
    return mine / rate if mine is not None and rate else None


@measure("seconds_to_target", "seconds to target", less=True)
def seconds_to_target(run):
    """Seconds of steps until the mean training loss of ten steps is at most the
    target. Compare it only between runs of one model and data."""
    point = run.reached(run.study.target) if run.study and _learned(run) else None
    return point.train_s if point else None


@measure("tokens_to_target", "1000 tokens to target", less=True, scale=1e-3)
def tokens_to_target(run):
    """The same in tokens of all workers."""
    point = run.reached(run.study.target) if run.study and _learned(run) else None
    return point.tokens if point else None


@measure("noise_scale", "noise scale")
def noise_scale(run):
    """The gradient noise scale in sequences (McCandlish and others, 2018): S over G2,
    S = (own_norm^2 - grad_norm^2) / (1/b - 1/B), G2 = (B grad_norm^2 - b own_norm^2) /
    (B - b), with b sequences of a worker and B of all, and the squares' means of the
    second half of the rows. It needs own_norm=1 and workers that wait for all others."""
    own, norms = run.column("own_norm"), run.column("grad_norm")
    waits = (run.setting("consistency") in ("", "bsp") and
             run.setting("backup") in ("", "0") and run.setting("elastic") != "1")
    if not any(own) or run.world < 2 or not waits:
        return None
    small, big = (mean(v * v for v in found[len(found) // 2:]) for found in (own, norms))
    b, all_b = run.global_batch / run.world, run.global_batch
    signal = (all_b * big - b * small) / (all_b - b)
    return (small - big) / (1 / b - 1 / all_b) / signal if signal > 0 else None
