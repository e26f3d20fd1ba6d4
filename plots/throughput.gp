# throughput.gp - tokens a second of each cell, with the median, the range from
# least to most, and every repeat as a point: reads table.csv and runs.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/table.csv"
load "cells.gp"
set title "Throughput of the job: median, range, repeats"
set xlabel "tokens per second"
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set yrange [n - 0.5 : -0.5]
set xrange [0:*]
set ytics noenhanced
unset key
set bmargin 4
if (crowded(FILE)) set label 99 note(FILE) at graph 0.99, graph 0.03 right tc rgb "#8a4b00"
RANGES = ""
if (repeated(FILE)) { RANGES = ', "" using (end_of("tokens_per_s")):0:(end_of("tokens_per_s_least")):(end_of("tokens_per_s_most")) with xerrorbars pt -1 lw 1.5 lc rgb "#000000"' }
plot FILE using (column("tokens_per_s") / 2):0:(column("tokens_per_s") / 2):(0.36): \
        (hex(backend_colour(stringcolumn("backend")))): \
        ytic(sprintf("%s%s  %.0f", shown(stringcolumn("cell")), mark(column("oversubscribed")), column("tokens_per_s"))) \
        with boxxyerror lc rgb variable @RANGES, \
     DIR . "/runs.csv" using "tokens_per_s":(number_of(stringcolumn("cell")) - 1) \
        with points pt 7 ps 0.9 lc rgb "#ffffff", \
     "" using "tokens_per_s":(number_of(stringcolumn("cell")) - 1) with points pt 6 ps 0.9 lw 1.5 lc rgb "#000000"
