# loss.gp - training and validation loss of one run by step, the mean of its
# workers: reads steps.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/steps.csv"
load "style.gp"
set title "Loss on the text it learns, and on text it has not seen"
set xlabel "step"
set ylabel "cross-entropy (nats a token)"
set yrange [0:*]
set xrange [0:*]
plot FILE using "step":"loss" smooth unique with lines lw 1 lc rgb "#a9c9e6" title "training, each step", \
     "" using "step":"loss":(3e-4) smooth acsplines lw 2.5 lc rgb "#235a97" title "training, smoothed", \
     "" using "step":"val_loss" with points pt 7 ps 1 lc rgb "#c2410c" title "validation"
