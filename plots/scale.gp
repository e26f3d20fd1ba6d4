# scale.gp - one exchange on more workers than there are: simulated time beside
# the law, and what it is of the law. Reads simulate.csv of lockstep simulate.

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
# the largest points first: where backends coincide, all of them are seen
size_of(i) = 2.6 - 1.5 * (i - 1) / (n > 1 ? n - 1 : 1)
mine(i, c) = stringcolumn("backend") eq B[i] ? column(c) : NaN
set logscale x 2
set xlabel "workers"
set grid xtics ytics lc rgb "#e2e2e2" lt 1
set multiplot layout 1, 2
set title "An exchange, simulated (line: the law)"
set ylabel "seconds"
set logscale y
set key top left
plot for [i=1:n] FILE using "workers":(mine(i, "law_s")) \
        with lines lw 1.5 lc rgb backend_colour(B[i]) notitle, \
     for [i=1:n] "" using "workers":(mine(i, "simulated_s")) \
        with points ps size_of(i) pt backend_point(B[i]) lc rgb backend_colour(B[i]) title B[i]
set title "Simulated / law"
unset logscale y
set ylabel "ratio"
set yrange [*<0.98:1.02<*]
set key top right
plot 1 with lines lw 1.5 dt 2 lc rgb "#999999" title "the law", \
     for [i=1:n] FILE using "workers":(mine(i, "ratio")) \
        with linespoints lw 1.5 ps size_of(i) pt backend_point(B[i]) lc rgb backend_colour(B[i]) title B[i]
unset multiplot
