"""Tests of answers.py: why a cell is last, by the shares of its steps and its tokens."""

import re
import shutil

from fabricated import answer, change, lockstep, rewrite, study, table


def waits_of_a_step(single, folder):
    """The wait of a step is its share of the time, times the median step. A slow
    first step does not change it."""
    run = folder / "waits"
    shutil.copytree(single, run)
    rewrite(run, 10000)
    (run / "breakdown.csv").write_text(
        "rank,kind,seconds,share,steps\n0,forward,0.6,0.6,40\n"
        "0,exposed,0.3,0.3,40\n0,wait,0.1,0.1,40\n0,evaluate,5,0,40\n")
    lockstep("report", run)
    row = next(iter(table(run / "table.csv").values()))
    assert abs(float(row["exposed_s_per_step"]) - .003) < 1e-9, row
    assert abs(float(row["wait_s_per_step"]) - .001) < 1e-9, row


def why_last(single, folder):
    """The last cell's link is busy, or others are late, or it computes: which of them
    the report says, and how long, agrees with breakdown.csv."""
    out = study(single, folder / "why", {"slow": (20000,) * 3, "last": (40000,) * 3})

    def spends(cell, **kinds):
        for run in (out / "cells" / cell).iterdir():
            (run / "breakdown.csv").write_text("rank,kind,seconds,share,steps\n" + "".join(
                f"0,{kind},{share},{share},40\n" for kind, share in kinds.items()))
    spends("slow", forward=1)
    for forward, exposed, wait, expect in (
            (.35, .6, .05, "its link is busy for 24 ms of each step's 40 ms without "
             "computing; the law predicts an exchange of 5.0 ms."),
            (.35, .05, .6, "it waits for others for 24 ms of each step's 40 ms without "
             "computing; the law"),
            (.2, .5, .3, "its link is busy for 20 ms of each step's 40 ms without "
             "computing, and it waits for others for 12 ms; the law"),
            (.7, .22, .08, "its link is busy for 8.8 ms of each step's 40 ms without "
             "computing; the law"),  # the first computes for 20 ms, and waits for none
            (.9, .08, .02, "it computes for 36 ms of each step's 40 ms, slow for 20 ms.")):
        for run in (out / "cells" / "last").iterdir():
            change(run, law={"exchange_s": .005})
        spends("last", forward=forward, exposed=exposed, wait=wait)
        said = answer(out)
        assert re.search(r"^last takes longest: [^:]*: " + re.escape(expect), said,
                         re.M), (expect, said)
    for kind, expect in (("data", "it waits for data for 22 ms of each step's 40 ms, slow "
                                  "for 0 ms."),
                         ("other", "it does what is not measured for 22 ms of each step's "
                                   "40 ms, slow for 0 ms.")):
        spends("last", forward=.45, **{kind: .55})
        assert re.search(r"^last takes longest: [^:]*: " + re.escape(expect), answer(out),
                         re.M), (expect, answer(out))


def pieces(single, folder):
    """A worker that waits for the pieces of others does not compute meanwhile, and its
    link is not busy with what replicas exchange."""
    out = study(single, folder / "pieces", {"slow": (20000,) * 3, "last": (40000,) * 3})
    for run in (out / "cells/last").iterdir():
        change(run, way={"pieces": 2}, law={"piece_tx": 1000})
        head, *rows = (run / "steps.csv").read_text().splitlines()
        at = head.split(",").index
        for i, row in enumerate(rows):
            cells = row.split(",")
            cells[at("t_join_us")], cells[at("piece_tx")] = "24000", "900"
            rows[i] = ",".join(cells)
        (run / "steps.csv").write_text("\n".join([head, *rows]) + "\n")
        (run / "breakdown.csv").write_text(
            "rank,kind,seconds,share,steps\n0,forward,.4,.4,40\n0,exposed,.25,.25,40\n"
            "0,wait,.35,.35,40\n")
    said = answer(out)
    assert "last takes longest: " in said and ": it waits for other slices or pieces for " \
        "24 ms of each step's 40 ms without computing." in said, said
    row = table(out / "table.csv")["last"]
    assert abs(float(row["join_s_per_step"]) - .024) < 1e-9 and \
        float(row["wait_s_per_step"]) == 0 and float(row["exposed_s_per_step"]) < 1e-9, row
    assert row["piece_bytes_tx_per_worker_step"] == "900" and \
        row["law_piece_bytes_tx"] == "1000", row
    assert "<h2>Between stages, slices and pieces</h2>" in (out / "report.html").read_text()


def dropped(single, folder):
    """A gradient that no update had is no part of the rate: here half of them are
    dropped, so a cell whose steps are shorter is slower."""
    out = study(single, folder / "dropped", {"slow": (20000,) * 3, "drops": (12000,) * 3},
                "baseline = slow\ntarget_loss = 1\n")  # which none reaches
    for run in (out / "cells/drops").iterdir():
        head, *rows = (run / "steps.csv").read_text().splitlines()
        at = head.split(",").index("tokens")
        rows = [",".join(str(int(c) // 2) if i == at else c
                         for i, c in enumerate(row.split(","))) for row in rows]
        (run / "steps.csv").write_text("\n".join([head, *rows]) + "\n")
    said = answer(out)
    assert said.startswith("slow is fastest: 1600 tokens/s"), said
    assert "drops is slowest: 1333 tokens/s, 0.83 times the rate of slow: its gradients have " \
        "50% of the tokens that it read, those of slow 100%.\n" in said, said
    assert "Not all that was read was trained on: drops has 50% of the tokens." in said, said
    row = table(out / "table.csv")["drops"]
    assert abs(float(row["speedup"]) - 5 / 6) < 1e-6 and float(row["trained_share"]) == .5, row


ALL = (waits_of_a_step, why_last, pieces, dropped)
