"""The time and the cost of a training that has not run."""

from .files import Error

LEGEND = """\
training    with tokens=: the time to train on so many tokens
cost        with price=: of all workers in this time"""


class Budget:
    """0: not asked. flops, mfu: peak FLOP/s of a worker's device, and the share that is
    used. tokens: of the whole training. price: of a worker and hour."""

    def __init__(self, values):
        self.flops, self.mfu, self.tokens, self.price = (
            float(values[name]) for name in ("flops", "mfu", "tokens", "price"))

    def check(self, gpu, compute_ms):
        """Refuses words that need or exclude each other."""
        if bool(self.flops) != bool(self.mfu):
            has, lacks = ("flops", "mfu") if self.flops else ("mfu", "flops")
            raise Error(f"predict: {has}= requires {lacks}=, too: the time of a step "
                        "follows from both; try: " +
                        ("mfu=0.4" if self.flops else "flops=312e12"))
        if self.flops and (gpu or compute_ms):
            raise Error("predict: flops= and mfu= give the time that "
                        f"{'device' if gpu else 'compute_ms'}= gives, too; try: without "
                        "one of them")
        if self.price and not self.tokens:
            raise Error(f"predict: price={self.price:g}: the cost follows from tokens=, "
                        "too; try: tokens=1e9")

    def head(self):
        """The heads of the columns that were asked for."""
        return f" {'training':>12}" * bool(self.tokens) + \
            f" {'cost':>10}" * bool(self.price)

    def row(self, tokens_per_s, workers):
        """Their values."""
        seconds = self.tokens / tokens_per_s
        cost = seconds / 3600 * workers * self.price
        return f" {duration(seconds):>12}" * bool(self.tokens) + \
            f" {cost:10.0f}" * bool(self.price)


def duration(seconds):
    """As people say it: "24 minutes", "12 days", "164 years"."""
    year, day = 365.25 * 86400, 86400
    for name, unit, least in (("years", year, 3 * year), ("days", day, 2 * day),
                              ("hours", 3600, 90 * 60), ("minutes", 60, 90),
                              ("seconds", 1, 0)):
        if seconds >= least:
            break
    n = seconds / unit
    return f"{n:.1f} {name}" if n < 9.95 else f"{n:.0f} {name}"
