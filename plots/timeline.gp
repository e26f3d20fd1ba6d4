# timeline.gp - a panel for each cell, with a line for each worker; shared by
# figures. There are up to 16 panels; with more cells, every k-th has one. What is
# left out is said in the title: `left`.

set multiplot layout down, across title title . left font ",17" noenhanced \
    margins across > 1 ? 0.075 : 0.095, 0.985, 80.0 / HIGH, 1 - (101.0 + 24 * key_rows) / HIGH spacing 0.05, 62.0 / HIGH
set xrange [0:last]
do for [p=1:panels] {
    set title name_of[p] font ",14" offset 0, -0.6
    set ylabel (p == 1 + across * ((down - 1) / 2) ? axis : "")
    set xlabel (p > panels - across ? "seconds" : "")
    if (p == 1) { set key at screen 0.5, screen 1 - (50.0 + 12 * key_rows) / HIGH center center horizontal maxrows key_rows } else { unset key }
    load "lines.gp"
}
unset multiplot
