# pipeline.gp - when each stage computes each micro-batch, for each schedule:
# reads timetable.csv. Forward is light, backward dark. Every second chunk of a
# stage is green instead of blue. The number in a box is that of the
# micro-batch.
#
# The third argument is the number of a step. With it, the figure shows that
# step of a run, read from its trace.json, with a row for each rank.

DIR = ARG1; OUT = ARG2
file = DIR . "/timetable.csv"
row = "stage"
if (ARGC > 2) {
    row = "rank"
    file = OUT . "-" . ARG3 . ".csv"
    system("awk -v want=" . (ARG3 + 0) . " -f trace_timetable.awk '" . DIR . "/trace.json' > '" . file . "'")
}
schedules = system("awk -F, 'NR>1&&$1~/^[[:alnum:]_.+-]+$/&&!s[$1]++{printf \"%s \", $1}' '" . file . "'")
stages = system("awk -F, 'NR>1&&$2+0>=m{m=$2+1} END{print m+0}' '" . file . "'") + 0
chunks = system("awk -F, 'NR>1&&$5+0>=m{m=$5+1} END{print m+0}' '" . file . "'") + 0
WIDE = 1200
# at least the height of the legend
HIGH = 90 + words(schedules) * (80 + 38 * (chunks > 1 && stages < 4 ? 4 : stages))
load "style.gp"
last = system("awk -F, 'NR>1&&$7>m{m=$7} END{print m+0}' '" . file . "'") + 0
# shorter boxes do not show their number
least = last * 0.016
rows(k, a, odd) = sprintf("< awk -F, '$1==\"%s\"&&$3==\"%s\"&&$5%%2==%d' '%s'", word(schedules, k), a, odd, file)
numbers(k, a) = sprintf("< awk -F, '$1==\"%s\"&&$3==\"%s\"&&$7-$6>=%g' '%s'", word(schedules, k), a, least, file)
end_of(k) = system(sprintf("awk -F, '$1==\"%s\"&&$7>m{m=$7} END{print m}' '%s'", word(schedules, k), file))
named(k) = ARGC > 2 ? "step " . ARG3 : word(schedules, k)
colour(a, odd) = a eq "forward" ? (odd ? "#c7e9cf" : kind_colour("forward")) \
                                : (odd ? "#2f7d55" : kind_colour("update"))
title_of(a, odd) = a . (chunks == 1 ? "" : odd ? ", odd chunk" : ", even chunk")
set multiplot layout words(schedules), 1 title "A step of a pipeline: " . row . "s by time, numbered by micro-batch" font ",17" noenhanced \
    margins 0.06, chunks == 1 ? 0.84 : 0.75, 80.0 / HIGH, 1 - 90.0 / HIGH spacing 0, 80.0 / HIGH
set xrange [0 : last > 0 ? last * 1.001 : 1]
set yrange [stages - 0.5 : -0.5]
set ytics 0, 1, stages - 1
set ylabel row
unset grid
set key outside right top vertical maxcols 1
do for [k=1:words(schedules)] {
    set title sprintf("%s: %s ms", named(k), end_of(k)) font ",14" offset 0,-0.5
    if (k == words(schedules)) { set xlabel "ms since the step began" }
    plot for [odd=0:(chunks > 1)] for [a in "forward backward"] \
             rows(k, a, odd) using 6:2:6:7:($2-0.42):($2+0.42) with boxxyerror \
             fs solid 1 border lc rgb "white" lc rgb colour(a, odd) title title_of(a, odd), \
         numbers(k, "forward") using (($6+$7)/2):2:4 with labels tc rgb "#222222" notitle, \
         numbers(k, "backward") using (($6+$7)/2):2:4 with labels tc rgb "white" notitle
}
unset multiplot
