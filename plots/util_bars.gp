# util_bars.gp - utilisation of each worker, with a thin bar for the share of
# the time in which its GPU is in collectives: reads workers.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/workers.csv"
WIDE = 1280
load "cells.gp"
most = system("awk -F, 'NR>1&&$3>m{m=$3} END{print m+0}' '" . FILE . "'") + 0
gpu = has_numbers(FILE, "gpu_comm")
set title gpu ? "Worker utilisation: share of the time in which its GPU computes" \
              : "Worker utilisation: share of the time in forward, backward and update"
set ylabel "utilisation (%)"
set yrange [0:119]
set ytics 0, 20, 100
set xrange [0.4 : n + 0.6]
set xtics nomirror noenhanced ()
set for [i=1:n] xtics add (word(names, i) . mark(value_at(FILE, word(cells, i), "oversubscribed")) i)
if (n > 4) set xtics rotate by -25
if (n > 4) set rmargin 20
set key top right horizontal
wide = 0.8 / most
many = most > 12 # with more workers: points without names
if (crowded(FILE)) set label 99 note(FILE) at graph 0.01, graph 0.96 tc rgb "#8a4b00"
at(w) = number_of(stringcolumn("cell")) - 0.4 + (w + 0.5) * wide
COLLECTIVES = ""
if (gpu) { COLLECTIVES = ', for [w=0:most-1] "" using (at(w) + 0.28 * wide):(column("worker") == w ? 100 * column("gpu_comm") : NaN):(wide * 0.2) with boxes lc rgb kind_colour("exposed") title w ? "" : kind_title("gpu_comm")' }
if (many) {
    unset key
    plot FILE using (at(column("worker"))):(100 * column("utilisation")) with points pt 7 ps 0.5 lc rgb "#2b6cb0"
} else {
    plot for [w=0:most-1] FILE using (at(w)):(column("worker") == w ? 100 * column("utilisation") : NaN):(wide * 0.92) \
        with boxes lc rgb worker_colour(w) title sprintf("worker %d", w), \
     for [w=0:most-1] "" using (at(w)):(column("worker") == w ? 100 * column("utilisation") : NaN): \
        (sprintf("%.0f", 100 * column("utilisation"))) with labels offset 0, 0.6 notitle @COLLECTIVES
}
