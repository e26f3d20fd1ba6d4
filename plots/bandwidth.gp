# bandwidth.gp - the time of a step by the rate of the links, and the time of
# its exchange with the law of each backend: reads table.csv (column net:
# "1gbit").

DIR = ARG1; OUT = ARG2
WIDE = 1280
FILE = DIR . "/table.csv"
load "style.gp"
backends = values_of(FILE, "backend")
gbit(s) = s eq "unshaped" ? NaN : \
    (strstrt(s, "gbit") ? real(s[1:strstrt(s, "gbit")-1]) : strstrt(s, "mbit") ? real(s[1:strstrt(s, "mbit")-1]) / 1000 : NaN)
held = "exposed_s_per_step"
mine(b, c) = stringcolumn("backend") eq b ? 1e3 * column(c) : NaN
set logscale xy
set xlabel "rate of each link (Gbit/s)"
set grid xtics ytics lc rgb "#e2e2e2" lt 1
set multiplot layout 1, 2
set title "Time of a step"
set ylabel "milliseconds"
set key top right
plot for [b in backends] FILE using (gbit(stringcolumn("net"))):(mine(b, "step_s")) \
        with linespoints lw 2 ps 1.2 pt backend_point(b) lc rgb backend_colour(b) title b
set title "Time held up by the exchange (dotted: law)"
plot for [b in backends] FILE using (gbit(stringcolumn("net"))):(mine(b, held) + mine(b, "wait_s_per_step")) \
        with linespoints lw 2 ps 1.2 pt backend_point(b) lc rgb backend_colour(b) title b, \
     for [i=1:words(backends)] "" using (gbit(stringcolumn("net"))):(mine(word(backends, i), "law_exchange_s")) \
        with lines lw 8 - 6.0 * i / words(backends) dt 3 lc rgb backend_colour(word(backends, i)) notitle
unset multiplot
