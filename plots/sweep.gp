# sweep.gp - tokens a second by the values of one key, a line for each other
# setting, with least and most of the repeats.

load "style.gp"
set title "Throughput by " . x_key
set xlabel x_key
set ylabel "tokens per second"
set yrange [0:*]
set offsets graph 0.03, graph 0.03, graph 0.08, 0
set grid xtics ytics lc rgb "#e2e2e2" lt 1
if (n > 0) {
    set xtics ()
    set for [i=1:n] xtics add (label[i] i - 1)
}
load "lines.gp"
