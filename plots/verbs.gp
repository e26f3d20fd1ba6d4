# verbs.gp - bytes that a worker sends in a step, stacked by verb, and below
# them the bytes of the law.

load "style.gp"
set title "Payload that a worker sends in a step, by verb (above: counted; below: law)"
set xlabel "MB"
load "bars.gp"
