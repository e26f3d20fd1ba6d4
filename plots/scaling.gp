# scaling.gp - speed-up by number of workers, with strong and weak scaling and
# the ideal line. A line is over the run of one worker with its settings. Strong:
# all workers share the batch of one worker. Weak: each worker has that batch.

load "style.gp"
set xlabel "workers" . below
set ylabel "speed-up over one worker"
set xtics tic
set ytics tic
set xrange [0.8:top + 0.3]
set yrange [0:top + 0.3]
set key top left
if (crowd) { set arrow 1 from crowd - 0.3, graph 0 to crowd - 0.3, graph 1 nohead dt 3 lc rgb "#8a4b00" }
set multiplot layout 1, 2
set title "Strong scaling: the same global batch"
load "lines.gp"
set title "Weak scaling: the same batch for each worker"
p = 2
unset label 99
load "lines.gp"
unset multiplot
