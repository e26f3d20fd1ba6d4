# loss.gp - training and validation loss of one run by step, mean of its
# workers.

load "style.gp"
set title "Loss on the training text, and on text held out of training"
set xlabel "step"
set ylabel "cross-entropy (nats a token)"
set xrange [*:*] noextend
# a line at each step where the job was started again after a failure
do for [i=1:agains] {
    set arrow from again[i], graph 0 to again[i], graph 0.96 nohead dt 2 lc rgb "#8a4b00"
    set label "restart" at again[i], graph 0.98 center tc rgb "#8a4b00"
}
smoothed = smooth ? ', FILE using (x(1)):"y":(3e-4) smooth acsplines with lines lw 2.5 lc rgb "#235a97" notitle' : ""
held_out = |name| > 1 ? ', FILE using (x(2)):"y" with points pt 7 ps 1 lc rgb colour[2] notitle' : ""
in_key = ', keyentry with lines lw 1 lc rgb colour[1] title name[1]' \
    . (smooth ? ', keyentry with lines lw 2.5 lc rgb "#235a97" title "training, smoothed"' : "") \
    . (|name| > 1 ? ', keyentry with points pt 7 ps 1 lc rgb colour[2] title name[2]' : "")
eval 'plot FILE using (x(1)):"y" with lines lw 1 lc rgb colour[1] notitle' . smoothed . held_out . in_key
