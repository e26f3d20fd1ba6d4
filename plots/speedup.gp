# speedup.gp - tokens a second relative to the baseline, and seconds to the
# target loss: reads table.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/table.csv"
WIDE = 1280
load "cells.gp"
target = value_at(FILE, word(cells, 1), "target_loss_nats")
panels = has_numbers(FILE, "speedup") + has_numbers(FILE, "seconds_to_target")
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set yrange [n - 0.5 : -0.5]
set xrange [0:*]
set ytics noenhanced
unset key
bar(c) = column(c) / 2
named = 0 # only the first panel has the names of cells
name_of(c) = named ? "" : c . "  "
largest(c) = system(sprintf("awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"%s\")k=i;next} $k+0>m{m=$k+0} END{print m+0}' '%s'", c, FILE)) + 0.0 # a real number: a quarter of an integer could be 0
# four or five tics
tic_of(most) = most <= 0 ? 1 : 10 ** floor(log10(most / 4)) * (most / 4 / 10 ** floor(log10(most / 4)) > 5 ? 10 : most / 4 / 10 ** floor(log10(most / 4)) > 2 ? 5 : 2)
# the further part of a plot that marks the range of each cell
range_of(c) = sprintf(', "" using (end_of("%s")):0:(end_of("%s_least")):(end_of("%s_most")) with xerrorbars pt -1 lw 1.5 lc rgb "#000000"', c, c, c)
RATIOS = repeated(FILE) ? range_of("speedup") : ""
TIMES = repeated(FILE) ? range_of("seconds_to_target") : ""
set multiplot layout 1, panels > 0 ? panels : 1
if (panels == 0) {
    set label 1 "no baseline= and no target loss" at graph 0.5, 0.5 center
    plot NaN
}
if (has_numbers(FILE, "speedup")) {
    set title "Speed-up: tokens/s over the baseline's"
    set xtics tic_of(largest("speedup_most"))
    set xlabel "speed-up"
    set arrow 1 from 1, graph 0 to 1, graph 1 nohead dt 2 lw 1.5 lc rgb "#555555" front
    eval 'plot FILE using (bar("speedup")):0:(bar("speedup")):(0.36):(hex(backend_colour(stringcolumn("backend")))): \
            ytic(sprintf("%s%s  %.2f", shown(stringcolumn("cell")), mark(column("oversubscribed")), column("speedup"))) \
            with boxxyerror lc rgb variable' . RATIOS
    unset arrow 1
    named = 1
}
if (has_numbers(FILE, "seconds_to_target")) {
    set title "Seconds to loss " . target
    set xtics tic_of(largest("seconds_to_target_most"))
    set xlabel "seconds of training steps"
    eval 'plot FILE using (bar("seconds_to_target")):0:(bar("seconds_to_target")):(0.36):(hex(backend_colour(stringcolumn("backend")))): \
            ytic(sprintf("%s%.3g", name_of(shown(stringcolumn("cell"))), column("seconds_to_target"))) \
            with boxxyerror lc rgb variable' . TIMES
}
unset multiplot
