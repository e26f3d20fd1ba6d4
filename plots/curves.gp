# curves.gp - a line for each of n cells; shared by figures of the loss. With
# `target` a line marks it, and points where each curve reaches it. The curves
# are those of the first repeat.

set ylabel "training loss (nats a token)"
set xrange [0:*]
if (exists("target")) { set arrow 1 from graph 0, first target to graph 1, first target nohead dt 2 lw 1.5 lc rgb "#555555" }
load "lines.gp"
