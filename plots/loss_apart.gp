# loss_apart.gp - the greatest relative difference of each cell's training loss from
# that of its baseline, up to each step. Where all losses are equal there is no line.

load "style.gp"
set title "Greatest difference from the baseline's training loss so far"
set xlabel "step" . below
set ylabel "difference / loss"
set logscale y
set format y "%.0e"
set yrange [1e-9:*]
set xrange [0:*]
load "lines.gp"
