#!/usr/bin/env python3
"""compare_speed.py OLD_BIN NEW_BIN - compares the speed of the exchange of two builds.

Runs the sync_perf of both builds alternately (old new, new old, ..) on one machine: two
and four workers, the ring over TCP and in shared memory, sps and dps, sizes from 4 B to
125 MiB. In a turn each build runs once. For each backend and size it prints the median
times of both builds in us; their ratio old/new (above 1: the new build is faster); the
spread, which is the middle half of the ratios of single turns; and the ratio of the
fastest turns. A ratio below 0.98 is marked "below", or "below?" if the spread reaches 0.98
or if there were fewer than four turns. Nothing is asserted, because times depend on the
load of the machine.

    --only WORD     only this backend (ring, ring-shm, sps or dps) or number of workers
                    (workers=2 or workers=4); give it twice to choose one of each
    --minutes N     run turns for this time (default 9), but at least two turns
    --rounds N      rounds of sync_perf in a turn (default 3)
    --max_mb N      MiB of the largest size (default 125)
    --also WORD     a setting for sync_perf, as wire=fp16 or factor=4
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import time

ROWS = ["ring", "ring-shm", "sps", "dps"]
WORKERS = [2, 4]
LEAST, FEW_TURNS = 0.98, 4
DEADLINE_S = 600  # of one sync_perf


def measure(bin_dir, row, workers, args):
    """{size in bytes: time in us}. None, after a line that says why, if sync_perf fails."""
    command = [str(bin_dir / "sync_perf"), f"sync={row}", f"workers={workers}",
               f"rounds={args.rounds}", f"max_mb={args.max_mb:g}", "factor=32",
               *args.also]
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        print(f"FAILED {' '.join(command)}: not done after {DEADLINE_S} s")
        return None
    if done.returncode:
        said = (done.stderr + done.stdout).strip().splitlines() or [""]
        print(f"FAILED {' '.join(command)}: {said[-1]}")
        return None
    times = {}
    for line in done.stdout.splitlines():
        cells = line.split()
        if len(cells) >= 10 and cells[0].isdigit():  # other tables have fewer
            times[int(cells[0])] = float(cells[3])
    if not times:
        print(f"FAILED {' '.join(command)}: printed no table")
        return None
    return times


def turn(cases, times, args, swapped):
    """Measure every case with both builds. False if one of them failed."""
    for case in cases:
        for build in ("new", "old") if swapped else ("old", "new"):
            got = measure(getattr(args, build), *case, args)
            if got is None:
                return False
            for size, us in got.items():
                times[case].setdefault(size, {"old": [], "new": []})
                times[case][size][build].append(us)
    return True


def print_case(case, sizes):
    """Print one case's table. Return the marks of its rows."""
    row, workers = case
    marks = []
    print(f"\n{row}, {workers} workers\n{'size(B)':>11} {'old(us)':>11} "
          f"{'new(us)':>11} {'old/new':>8}  {'spread':12}  fastest")
    for size, t in sizes.items():
        old, new = statistics.median(t["old"]), statistics.median(t["new"])
        single = sorted(a / b for a, b in zip(t["old"], t["new"]))
        cut = len(single) // 4
        low, high = single[cut], single[-1 - cut]
        marks.append("" if old / new >= LEAST else
                     "below" if high < LEAST and len(single) >= FEW_TURNS
                     else "below?")
        print(f"{size:11} {old:11.1f} {new:11.1f} {old / new:8.2f}  "
              f"{low:4.2f} .. {high:4.2f}  {min(t['old']) / min(t['new']):7.2f}"
              f"  {marks[-1]}".rstrip())
    return marks


def parse():
    p = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old", type=pathlib.Path, metavar="OLD_BIN")
    p.add_argument("new", type=pathlib.Path, metavar="NEW_BIN")
    p.add_argument("--only", action="append", default=[], metavar="WORD")
    p.add_argument("--minutes", type=float, default=9)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--max_mb", type=float, default=125)
    p.add_argument("--also", action="append", default=[], metavar="WORD")
    args = p.parse_args()
    for folder in args.old, args.new:
        if not (folder / "sync_perf").is_file():
            p.error(f"{folder}: no program sync_perf; try: build/release/bin")
    return args


def main():
    args = parse()
    cases = [(row, n) for n in WORKERS for row in ROWS
             if all(w in (row, f"workers={n}") for w in args.only)]
    if not cases:
        sys.exit(f"--only {' '.join(args.only)}: no such row; try: "
                 f"{', '.join(ROWS)}, workers=2, workers=4")
    times = {case: {} for case in cases}
    began, turns, longest = time.monotonic(), 0, 0
    while turns < 2 or time.monotonic() + longest < began + args.minutes * 60:
        start = time.monotonic()
        if not turn(cases, times, args, turns % 2 == 1):
            return 1
        turns += 1
        longest = max(longest, time.monotonic() - start)
    marks = [m for case in cases for m in print_case(case, times[case])]
    print(f"\n{turns} turns of {args.rounds} rounds in "
          f"{time.monotonic() - began:.0f} s")
    print(f"{len(marks)} rows; below {LEAST}: {marks.count('below')}, and "
          f"{marks.count('below?')} in doubt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
