# loss_seeds.gp - validation loss by seconds, a panel for each rate of the
# links. Cells that differ only by seed= are one line: the mean of their losses,
# in a band from the least to the greatest.

load "style.gp"
set ylabel "validation loss (nats a token)"
set xlabel "seconds of training steps, without evaluation"
set xrange [0:*]
set multiplot layout panels, 1
do for [p=1:panels] {
    set title "Validation loss" . net[p] . " (band: least to most over the seeds)"
    if (p == panels) { set xlabel "seconds of training steps, without evaluation" . below }
    load "lines.gp"
    unset label 99
    unset key # the same lines in all panels
}
unset multiplot
