# throughput.gp - tokens a second of each cell, least to most of its repeats:
# reads table.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/table.csv"
load "style.gp"
cells = values_of(FILE, "cell")
n = words(cells)
set title "Throughput of the whole job"
set xlabel "tokens per second"
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set yrange [n - 0.5 : -0.5]
set xrange [0:*]
set ytics noenhanced
unset key
set bmargin 4
if (crowded(FILE)) set label 99 note(FILE) at graph 0.99, graph 0.03 right font ",10" tc rgb "#8a4b00"
plot FILE using (column("tokens_per_s") / 2):0:(column("tokens_per_s") / 2):(0.36): \
        (hex(backend_colour(stringcolumn("backend")))): \
        ytic(stringcolumn("cell") . mark(column("oversubscribed"))) \
        with boxxyerror lc rgb variable, \
     "" using "tokens_per_s":0:"tokens_per_s_least":"tokens_per_s_most" \
        with xerrorbars pt -1 lw 1.5 lc rgb "#000000", \
     "" using "tokens_per_s_most":0:(sprintf("  %.0f", column("tokens_per_s"))) \
        with labels left font ",11"
