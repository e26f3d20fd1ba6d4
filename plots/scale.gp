# scale.gp - one exchange on more workers than there are: simulated time beside
# the law, and what it is of the law. Reads simulate.csv of lockstep simulate.

DIR = ARG1; OUT = ARG2
WIDE = 1080
FILE = DIR . "/simulate.csv"
load "style.gp"
# the largest points first: where backends coincide, all of them are seen
there = values_of(FILE, "backend")
backends = ""
do for [b in "dps allreduce ring sps"] {
    if (strstrt(there, '"' . b . '"')) { backends = backends . " " . b }
}
mine(b, c) = stringcolumn("backend") eq b ? column(c) : NaN
size_of(b) = b eq "dps" ? 2.6 : b eq "allreduce" ? 1.9 : 1.1
set logscale x 2
set xlabel "workers"
set grid xtics ytics lc rgb "#e2e2e2" lt 1
set multiplot layout 1, 2
set title "An exchange, simulated (line: the law)"
set ylabel "seconds"
set logscale y
set key top left
plot for [b in backends] FILE using "workers":(mine(b, "law_s")) \
        with lines lw 1.5 lc rgb backend_colour(b) notitle, \
     for [b in backends] "" using "workers":(mine(b, "simulated_s")) \
        with points ps size_of(b) pt backend_point(b) lc rgb backend_colour(b) title b
set title "Simulated / law"
unset logscale y
set ylabel "ratio"
set yrange [*<0.98:1.02<*]
set key top right
plot 1 with lines lw 1.5 dt 2 lc rgb "#999999" title "the law", \
     for [b in backends] FILE using "workers":(mine(b, "ratio")) \
        with linespoints lw 1.5 ps size_of(b) pt backend_point(b) lc rgb backend_colour(b) title b
unset multiplot
