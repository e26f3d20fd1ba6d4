# scale.gp - the simulated time of an exchange by number of workers, with the
# law, and its ratio to the law: simulate.csv of lockstep simulate.

load "style.gp"
set xlabel "workers"
set grid xtics ytics lc rgb "#e2e2e2" lt 1
set logscale x 2
set multiplot layout 1, 2
set title "Time of an exchange, simulated (line: law)"
set ylabel "seconds"
set logscale y
set key top left
load "lines.gp"
set title "Simulated time / law"
set ylabel "ratio"
unset logscale y
set xrange [2:top]
set yrange [*<0.98:1.02<*]
set key top right
p = 2
load "lines.gp"
unset multiplot
