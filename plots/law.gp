# law.gp - the time of an exchange and its law, a bar for each backend and
# number of workers: the largest size of each block of sweep.txt, the output of
# sync_perf.

load "style.gp"
set title title
set ylabel "milliseconds"
set yrange [0:1e-9<*]
set offsets 0, 0, graph 0.12, 0
set bmargin 4
unset key
number = "%+.1f%%"
load "columns.gp"
