# breakdown.gp - the time of a step by kind of work, stacked, with a bar for
# each cell: reads shares.csv. If workers have GPUs, the bar shows how long the
# GPUs compute. A thin bar below it shows how long they are in collectives,
# mostly while they compute.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/shares.csv"
load "cells.gp"
set title "Time of a step by kind of work, mean of the workers"
set xlabel "milliseconds a step" . (crowded(FILE) ? "\n" . note(FILE) : "")
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set yrange [n - 0.5 : -0.5]
set xrange [0:*]
set ytics noenhanced
set key outside right center vertical samplen 1.5
have = "" # kinds that some cell has
do for [k in KINDS] { if (has_numbers(FILE, k . "_share")) { have = have . k . " " } }
KINDS = have
m = words(KINDS)
ms(k) = column("step_s") * 1000 * column(word(KINDS, k) . "_share")
half(c) = 500 * column("step_s") * column(c)
below(c) = (sum [i=1:n] (word(cells, i) eq c ? i : 0)) - 0.58
upto(k) = k < 1 ? 0 : (sum [j=1:k] ms(j))
COLLECTIVES = ""
if (has_numbers(FILE, "gpu_comm_share")) { COLLECTIVES = ', "" using (half("gpu_comm_share")):(below(stringcolumn("cell"))):(half("gpu_comm_share")):(0.05) with boxxyerror lc rgb kind_colour("exposed") title kind_title("gpu_comm")' }
plot for [k=1:m] FILE using ((upto(k - 1) + upto(k)) / 2):0:(ms(k) / 2):(0.36): \
        ytic(shown(stringcolumn("cell")) . mark(column("oversubscribed"))) \
        with boxxyerror lc rgb kind_colour(word(KINDS, k)) title kind_title(word(KINDS, k)) @COLLECTIVES
