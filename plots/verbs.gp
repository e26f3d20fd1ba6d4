# verbs.gp - bytes that a worker sends in a step, stacked by verb, and below
# them the bytes of the law: reads verbs.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/verbs.csv"
load "cells.gp"
set datafile columnheaders # needed because only functions name columns
set title "Payload that a worker sends in a step, by verb (above: counted; below: law)"
set xlabel "MB"
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set yrange [n - 0.5 : -0.5]
set xrange [0:*]
set ytics noenhanced
set key outside right center vertical samplen 1.5
VERBS = "reduce_scatter all_gather all_reduce reduce broadcast send push"
verb_colour(k) = word("#235a97 #6ba6d6 #f2b04c #c2410c #e0e0e0 #2ba58d #45257a", k)
law_colour(k) = word("#9bb3cf #c4dcee #f9dba6 #e3a487 #f0f0f0 #99d3c6 #b1a5c9", k)
m = words(VERBS)
# the legend has only verbs that some cell uses
array HAVE[m]
do for [k=1:m] { HAVE[k] = has_numbers(FILE, word(VERBS, k) . "_bytes") || has_numbers(FILE, "law_" . word(VERBS, k) . "_bytes") }
mb(k) = column(word(VERBS, k) . "_bytes") * 1e-6
law(k) = column("law_" . word(VERBS, k) . "_bytes") * 1e-6
upto(k) = k < 1 ? 0 : (sum [j=1:k] mb(j))
law_upto(k) = k < 1 ? 0 : (sum [j=1:k] law(j))
plot for [k=1:m] FILE using ((upto(k - 1) + upto(k)) / 2):($0 - 0.17):(mb(k) / 2):(0.16): \
        ytic(shown(stringcolumn("cell"))) \
        with boxxyerror lc rgb verb_colour(k) title HAVE[k] ? word(VERBS, k) : "", \
     for [k=1:m] FILE using ((law_upto(k - 1) + law_upto(k)) / 2):($0 + 0.17):(law(k) / 2):(0.16) \
        with boxxyerror lc rgb law_colour(k) notitle
