# loss_curves.gp - shared by loss_step.gp, loss_tokens.gp and loss_seconds.gp:
# the column Y of DIR/curves.csv by the column X times SCALE. If `target` is
# set, a point marks where each curve reaches it (from runs.csv). The curves are
# those of the first repeat.

FILE = DIR . "/curves.csv"
load "cells.gp"
set ylabel "training loss (nats a token)"
if (n > 8) { set key outside right top vertical maxcols 1; set title offset 6,-0.3 } else { set key top right }
set xrange [0:*]
if (crowded(FILE)) set label 99 note(FILE) at graph 0.01, graph 0.03 tc rgb "#8a4b00"
array C[n]; array B[n]; array D[n]
do for [i=1:n] {
    C[i] = word(cells, i)
    B[i] = value_at(FILE, C[i], "backend")
    D[i] = 1
    do for [j=1:i-1] { if (B[j] eq B[i]) { D[i] = D[i] + 1 } }
}
# if many cells have the same backend, each cell has its own colour instead
one = 0
do for [i=1:n] { if (D[i] > 4 || (i == n && i > 1 && D[i] == n)) { one = 1 } }
curve_colour(i) = one ? worker_colour(i-1) : backend_colour(B[i])
curve_dash(i) = one ? 1 + (i-1) / 6 : D[i]
# later lines are thinner, so that equal lines are all seen; with many lines
# each one has a few points
width(i) = n > 1 ? 1.5 + 3.5 * (n - i) / (n - 1) : 2
point(i) = word("7 5 9 11 13 15 6 4 8 10 12 14 3", 1 + (i-1) % 13) + 0
size = n > 6 ? 1 : 0
points(i) = sprintf("< awk -F, 'NR==1{for(i=1;i<=NF;i++){if($i==\"%s\")x=i;if($i==\"%s\")y=i};next} $1==\"%s\"{X[m++]=$x;Y[m-1]=$y} END{e=m<7?1:int(m/6); for(j=int(e*%d/%d);j<m;j+=e)print X[j] \",\" Y[j]}' '%s'", X, Y, C[i], i, n + 1, FILE)
if (!exists("target")) target = ""
command = 'plot for [i=1:n] keyentry with linespoints lw width(i) ps size pt point(i) dt curve_dash(i) lc rgb curve_colour(i) title shown(C[i]), for [i=1:n] FILE using (column(X) * SCALE):(stringcolumn("cell") eq C[i] ? column(Y) : NaN) with lines lw width(i) dt curve_dash(i) lc rgb curve_colour(i) notitle'
if (size) { command = command . ', for [i=1:n] points(i) using ($1 * SCALE):2 with points pt point(i) ps 1 lw 1.5 lc rgb curve_colour(i) notitle' }
if (strlen(target)) { command = command . ', for [i=1:n] DIR . "/runs.csv" using (stringcolumn("cell") eq C[i] && column("repeat") == 1 ? column("seconds_to_target") : NaN):(target + 0) with points pt 7 ps 1.6 lc rgb curve_colour(i) notitle' }
eval command
