# bars.gp - a panel with a row of bars for each cell; shared by figures. FILE has
# a line for each thing to draw, and `what` says what it is: a bar from `least`
# to `most`, a range with marks at both, a repeat (a point at `least`), or a law
# (a line across the bar at `least`). `place` is the row, from 0; `half` is half
# the height of a bar. `have` says which of them panel p has.

x(what) = stringcolumn("what") eq what && column("panel") == p ? column("least") : NaN
low(i) = column("place") - column("half")
high(i) = column("place") + column("half")
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set xrange [0:1e-9<*]
set yrange [n - 0.5 : -0.5]
set ytics () # each row has a label; `room` is the width of the labels of a panel
set for [i=1:n] ytics add (label[(p - 1) * n + i] i - 1)
share = (WIDE - key_room - (sum [q=1:panels] room[q])) / panels - 40
set lmargin at screen ((sum [q=1:p] room[q]) + (p - 1) * (share + 40)) / WIDE
set rmargin at screen ((sum [q=1:p] room[q]) + (p - 1) * (share + 40) + share) / WIDE
has(kind) = have[5 * (p - 1) + kind]
ranges = has(2) ? ', for [i=1:2] FILE using (x("range")):"place":"least":"most" with xerrorbars pt -1 lw (i == 1 ? 4 : 1.5) lc rgb (i == 1 ? "#ffffff" : "#000000") notitle' : ""
repeats = has(3) ? ', for [i=1:2] FILE using (x("repeat")):"place" with points pt 8 - i ps 0.9 lw 1.5 lc rgb (i == 1 ? "#ffffff" : "#000000") notitle' : ""
laws = has(4) ? ', FILE using (x("law")):(low(0)):(0):(2 * column("half")) with vectors nohead lw 3 lc rgb "#000000" notitle, keyentry with lines lw 3 lc rgb "#000000" title law' : ""
in_key = keys ? ', for [i=1:keys] keyentry with boxes lc rgb key_colour[i] title key[i]' : ""
eval 'plot FILE using (x("bar")):"place":"least":"most":(low(0)):(high(0)):(hex(stringcolumn("colour"))) with boxxyerror lc rgb variable notitle' . ranges . repeats . in_key . laws
