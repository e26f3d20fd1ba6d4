# timeline.gp - shared by util_timeline.gp and memory_timeline.gp: a panel for
# each cell, with a line for each worker. The line is the first metric of
# METRICS that the worker has, times UNIT, on an axis up to MOST. With SERVERS =
# 1 servers have lines, too. The metric BESIDE is a thin line, if a worker has
# it. There are up to 16 panels, in the order of table.csv; with more cells,
# every k-th cell has a panel.

single = system("cd '" . DIR . "'; ls util.csv 2>/dev/null") ne ""
if (!single) FILE = DIR . "/table.csv"; load "cells.gp"
folder(c) = DIR . "/" . system("echo '" . c . "' | tr ' ' '_' | sed 's,.*,cells/&/r1/util.csv,'")
all = ""
if (!single) { do for [c in cells] { if (system("ls '" . folder(c) . "' 2>/dev/null") ne "") { all = all . '"' . c . '" ' } } }
every = int((words(all) + 15) / 16)
n = single ? 1 : every ? int((words(all) + every - 1) / every) : 0
across = n > 6 ? 2 : 1
down = int((n + across - 1) / across)
cell(i) = word(all, 1 + (i - 1) * every)
file(i) = single ? DIR . "/util.csv" : folder(cell(i))
WIDE = across > 1 ? 1280 : 1120
HIGH = n > 1 ? 190 + 145 * down : 560
load "style.gp"
name_of(i) = single ? system("basename '" . DIR . "'") : shown(cell(i))
metric_of(f, r) = system("awk -F, '$2==\"" . r . "\"{s[$3]=1} END{n=split(\"" . METRICS . "\",m,\" \"); for(i=1;i<=n;i++)if(m[i] in s){print m[i];exit}}' '" . f . "'")
samples(f, r, m) = "< awk -F, '$2==\"" . r . "\"&&$3==\"" . m . "\"' '" . f . "'"
ranks_of(f) = system("awk -F, 'NR>1&&" . (SERVERS ? "1" : "$2+0==$2") . "&&!s[$2]++{print $2}' '" . f . "' | sort -V | head -n 12")
is_server(r) = r[1:1] eq "s"
who(r) = is_server(r) ? "server " . r[2:] : "worker " . r
dash_of(r) = is_server(r) ? 2 : 1
evaluates(f) = system("awk -F, '$2==0&&$3==\"evaluate_share\"&&$4>0{n=1} END{print n+0}' '" . f . "'") + 0
has(f, m) = system("awk -F, '$3==\"" . m . "\"&&$4>0{n=1} END{print n+0}' '" . f . "'") + 0
colour_of(r) = worker_colour(is_server(r) ? r[2:] + 3 : r + 0)
list = ""
do for [i=1:n] { list = list . " '" . file(i) . "'" }
last = n ? system("awk -F, '$1+0>m{m=$1} END{if(!m)m=1; print m}'" . list) + 0 : 1
# one legend for all panels, with every worker and server of any panel
everybody = ""
beside = 0
do for [i=1:n] {
    if (exists("BESIDE")) { if (has(file(i), BESIDE)) { beside = 1 } }
    do for [r in ranks_of(file(i))] {
        if (strstrt(" " . everybody, " " . r . " ") == 0) { everybody = everybody . r . " " }
    }
}
if (every > 1) TITLE = sprintf("%s; every %s cell", TITLE, every == 2 ? "second" : every == 3 ? "third" : sprintf("%d.", every))
set multiplot layout (down ? down : 1), across title TITLE font ",17" noenhanced \
    margins across > 1 ? 0.075 : 0.095, 0.985, 80.0 / HIGH, 1 - 125.0 / HIGH spacing 0.05, 62.0 / HIGH
set xrange [0:last]
# three tics, the same in all panels
most = n ? system("awk -F, '$3==\"" . word(METRICS, 1) . "\"&&$4+0>m{m=$4+0} END{print m+0}'" . list) * UNIT : 1
tic = most > 0 ? 10 ** floor(log10(most / 2)) * floor(most / 2 / 10 ** floor(log10(most / 2))) : 1
if (exists("MOST")) { set yrange [0:MOST]; set ytics 0, 50, 100 } else { set yrange [0 : most > 0 ? 1.15 * most : 1]; set ytics 0, tic, 100 * tic }
if (n == 0) {
    set label 1 "no run has samples" at graph 0.5, 0.5 center
    plot NaN notitle
}
do for [i=1:n] {
    f = file(i)
    set title name_of(i) font ",14" offset 0,-0.6
    set ylabel (i == 1 + across * int((down - 1) / 2) ? LABEL : "")
    set xlabel (i > n - across ? "seconds" : "")
    if (i == 1) { set key at screen 0.5, screen 1 - 62.0 / HIGH center center horizontal maxrows 1 } else { unset key }
    mine = ""
    do for [r in ranks_of(f)] { if (metric_of(f, r) ne "") { mine = mine . r . " " } }
    grey = exists("MOST") ? evaluates(f) : 0
    thin = beside ? has(f, BESIDE) : 0
    command = 'plot for [r in everybody] keyentry with lines lw 2.5 dt dash_of(r) lc rgb colour_of(r) title who(r)'
    if (beside) { command = command . ', keyentry with lines lw 1.5 dt 3 lc rgb "#555555" title BESIDE_TITLE' }
    if (grey) { command = command . ', samples(f, "0", "evaluate_share") using 1:(100 * $4) with impulses lw 4 lc rgb "#dddddd" notitle' }
    if (!words(mine)) { command = command . ', NaN notitle' }
    if (words(mine)) { command = command . ', for [r in mine] samples(f, r, metric_of(f, r)) using 1:(UNIT * $4) with lines lw 2 dt dash_of(r) lc rgb colour_of(r) notitle' }
    if (thin) { command = command . ', for [r in mine] samples(f, r, BESIDE) using 1:(UNIT * $4) with lines lw 2 dt 3 lc rgb colour_of(r) notitle' }
    eval command
}
unset multiplot
