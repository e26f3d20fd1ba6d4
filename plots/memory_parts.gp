# memory_parts.gp - predicted memory of a worker, stacked by part, with the
# measured peak: reads memory.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/memory.csv"
load "cells.gp"
set datafile columnheaders # needed because only functions name columns
set title "Memory of a worker: predicted by part, and measured peak"
set xlabel "MB"
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set yrange [n - 0.5 : -0.5]
set xrange [0:*]
set ytics noenhanced
set key outside right center vertical samplen 1.5
PARTS = "parameters gradients optimizer buffers activations process mapped"
part_colour(k) = word("#235a97 #6ba6d6 #f2b04c #c2410c #2ba58d #c8c8c8 #ececec", k)
part_title(k) = k == 3 ? "optimiser" : k == 7 ? "mapped, of others" : word(PARTS, k)
m = words(PARTS)
mb(k) = column(word(PARTS, k) . "_bytes") * 1e-6
upto(k) = k < 1 ? 0 : (sum [j=1:k] mb(j))
peak(x) = column("peak_bytes") * 1e-6
plot for [k=1:m] FILE using ((upto(k - 1) + upto(k)) / 2):0:(mb(k) / 2):(0.3): \
        ytic(shown(stringcolumn("cell"))) \
        with boxxyerror lc rgb part_colour(k) title part_title(k), \
     FILE using (peak(0)):0:(0):(0.42) with vectors nohead lw 3 lc rgb "#000000" notitle, \
     FILE using (peak(0)):0:(0):(-0.42) with vectors nohead lw 3 lc rgb "#000000" title "measured peak"
