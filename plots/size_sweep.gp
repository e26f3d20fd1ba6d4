# size_sweep.gp - bus bandwidth by size, a line for each backend: sweep.txt, the
# output of sync_perf.

load "style.gp"
set logscale xy 10
set title "Bus bandwidth of an exchange by size (dotted: law of the fitted link)"
set xlabel "size (bytes)"
set ylabel "busbw (GB/s)"
set format x "%.0s%c"
set format y "%g"
set key top left
load "lines.gp"
