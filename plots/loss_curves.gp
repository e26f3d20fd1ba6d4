# loss_curves.gp - what loss_step.gp, loss_tokens.gp and loss_seconds.gp share:
# the column Y of DIR/curves.csv against X, scaled by SCALE; with `target`, the
# points at which runs.csv says that it is reached (curves are the first repeat's).

FILE = DIR . "/curves.csv"
cells = values_of(FILE, "cell")
n = words(cells)
# names in one column beside the curves need a figure that is high enough
if (n > 17) HIGH = 170 + 27 * n; load "style.gp"
set ylabel "training loss (nats a token)"
if (n > 8) { set key outside right top; set title offset 16,-0.3 } else { set key top right }
set xrange [0:*]
if (crowded(FILE)) set label 99 note(FILE) at graph 0.01, graph 0.03 tc rgb "#8a4b00"
array C[n]; array B[n]; array D[n]
do for [i=1:n] {
    C[i] = word(cells, i)
    B[i] = value_at(FILE, C[i], "backend")
    D[i] = 1
    do for [j=1:i-1] { if (B[j] eq B[i]) { D[i] = D[i] + 1 } }
}
# where all cells have one backend its colour says nothing: a colour a cell
one = n > 1
do for [i=2:n] { if (B[i] ne B[1]) { one = 0 } }
curve_colour(i) = one ? worker_colour(i-1) : backend_colour(B[i])
curve_dash(i) = one ? 1 + (i-1) / 6 : D[i]
width(i) = n > 1 ? 1.5 + 3.5 * (n - i) / (n - 1) : 2
reached = exists("target") ? strlen(target) > 0 : 0
# a line that covers another exactly is thinner, so that both are seen
if (reached) {
    plot for [i=1:n] FILE using (column(X) * SCALE):(stringcolumn("cell") eq C[i] ? column(Y) : NaN) \
            with lines lw width(i) dt curve_dash(i) lc rgb curve_colour(i) title C[i], \
         for [i=1:n] DIR . "/runs.csv" using (stringcolumn("cell") eq C[i] && column("repeat") == 1 ? column("seconds_to_target") : NaN):(target + 0) \
            with points pt 7 ps 1.4 lc rgb curve_colour(i) notitle
} else {
    plot for [i=1:n] FILE using (column(X) * SCALE):(stringcolumn("cell") eq C[i] ? column(Y) : NaN) \
        with lines lw width(i) dt curve_dash(i) lc rgb curve_colour(i) title C[i]
}
