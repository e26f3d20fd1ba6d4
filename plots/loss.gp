# loss.gp - training and validation loss of one run by step, mean of its
# workers: reads steps.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/steps.csv"
load "style.gp"
set title "Loss on the training text, and on text held out of training"
set xlabel "step"
set ylabel "cross-entropy (nats a token)"
set yrange [*:*]
set xrange [*:*] noextend
# a line at each step where the job was started again after a failure
again = system("awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"restarts\")k=i;next} k&&$k>n{n=$k; print $4}' '" . FILE . "'")
do for [s in again] {
    set arrow from s + 0, graph 0 to s + 0, graph 0.96 nohead dt 2 lc rgb "#8a4b00"
    set label "restart" at s + 0, graph 0.98 center tc rgb "#8a4b00"
}
# a smooth line needs four steps
steps = system("awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"step\")k=i;next} !seen[$k]++{n++} END{print n+0}' '" . FILE . "'") + 0
EACH = '"step":"loss" smooth unique with lines lw 1 lc rgb "#a9c9e6" title "training, each step"'
SMOOTH = steps < 4 ? 'NaN notitle' : \
    'FILE using "step":"loss":(3e-4) smooth acsplines lw 2.5 lc rgb "#235a97" title "training, smoothed"'
plot FILE using @EACH, @SMOOTH, \
     FILE using "step":"val_loss" with points pt 7 ps 1 lc rgb "#c2410c" title "validation"
