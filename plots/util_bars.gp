# util_bars.gp - utilisation of each worker, with a thin bar for the share of
# the time in which its GPU is in collectives.

load "style.gp"
set title title
set xlabel below
set ylabel "utilisation (%)"
set yrange [0:119]
set ytics 0, 20, 100
set key top right horizontal
number = "%.0f"
load "columns.gp"
