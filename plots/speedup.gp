# speedup.gp - tokens a second relative to the baseline, and seconds to the
# target loss.

load "style.gp"
unset key
set multiplot layout 1, panels
do for [p=1:panels] {
    set title title[p]
    set xlabel axis[p] . below
    set xtics tic[p]
    if (line[p]) { set arrow 1 from 1, graph 0 to 1, graph 1 nohead dt 2 lw 1.5 lc rgb "#555555" front }
    load "bars.gp"
    unset arrow 1
    unset label 99
}
unset multiplot
