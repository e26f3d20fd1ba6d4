# staleness.gp - the number of updates by others between a worker's pull and its
# push, of all repeats.

load "style.gp"
set title "Staleness: updates by others between pull and push"
set xlabel "updates"
set ylabel "share of all steps (%)"
set xtics 1
set xrange [-0.6:last + 0.6]
set yrange [0:1e-9<*]
number = "%.0f"
load "columns.gp"
