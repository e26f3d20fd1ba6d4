# bandwidth.gp - the time of a step by the rate of the links, and the time of
# its exchange with the law of each backend.

load "style.gp"
set logscale xy
set xlabel "rate of each link (Gbit/s)" . below
set grid xtics ytics lc rgb "#e2e2e2" lt 1
unset rmargin
set multiplot layout 1, 2 margins 75.0 / WIDE, 1 - (key_room + 12.0) / WIDE, (note eq "" ? 75.0 : 95.0) / HIGH, 1 - 50.0 / HIGH spacing 100.0 / WIDE
set title "Time of a step, ms"
load "lines.gp"
set title "Held up by the exchange, ms (dotted: law)"
p = 2
unset label 99
load "lines.gp"
unset multiplot
