# scale.gp - the simulated time of an exchange by number of workers, with the
# law, and its ratio to the law: reads simulate.csv of lockstep simulate.

DIR = ARG1; OUT = ARG2
WIDE = 1280
FILE = DIR . "/simulate.csv"
load "style.gp"
there = values_of(FILE, "backend")
n = 0
array B[words(there)]
do for [b in BACKENDS] {
    if (strstrt(there, '"' . b . '"')) { n = n + 1; B[n] = b }
}
# the largest points first, so that equal points of several backends are all seen
size_of(i) = 2.6 - 1.5 * (i - 1) / (n > 1 ? n - 1 : 1)
mine(i, c) = stringcolumn("backend") eq B[i] ? column(c) : NaN
set logscale x 2
set xlabel "workers"
set grid xtics ytics lc rgb "#e2e2e2" lt 1
set multiplot layout 1, 2
set title "Time of an exchange, simulated (line: law)"
set ylabel "seconds"
set logscale y
set key top left
plot for [i=1:n] FILE using "workers":(mine(i, "law_s")) \
        with lines lw 1.5 lc rgb backend_colour(B[i]) notitle, \
     for [i=1:n] "" using "workers":(mine(i, "simulated_s")) \
        with points ps size_of(i) pt backend_point(B[i]) lc rgb backend_colour(B[i]) title B[i]
set title "Simulated time / law"
unset logscale y
set ylabel "ratio"
set yrange [*<0.98:1.02<*]
set key top right
plot 1 with lines lw 1.5 dt 2 lc rgb "#999999" title "law", \
     for [i=1:n] FILE using "workers":(mine(i, "ratio")) \
        with linespoints lw 1.5 ps size_of(i) pt backend_point(B[i]) lc rgb backend_colour(B[i]) title B[i]
unset multiplot
