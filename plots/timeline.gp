# timeline.gp - what util_timeline.gp and memory_timeline.gp share: a panel a
# cell, a line a worker: METRICS (the first of these words that the worker has)
# times UNIT, up to MOST; servers too, with SERVERS = 1.

# in the order of table.csv, where there is one
all = system("cd '" . DIR . "'; [ -f util.csv ] && echo '\"util.csv\"' || awk -F, 'NR>1{c=$1; gsub(/ /,\"_\",c); f=\"cells/\" c \"/r1/util.csv\"; if((getline l < f)>=0) print \"\\\"\" f \"\\\"\"}' table.csv")
every = int((words(all) + 6) / 7)
n = every ? int((words(all) + every - 1) / every) : 0
file(i) = DIR . "/" . word(all, 1 + (i - 1) * every)
HIGH = n > 1 ? 150 + 150 * n : 520
load "style.gp"
name_of(f) = system("dirname '" . f . "' | sed 's,/r1$,,; s,.*/,,; s,_, ,g'")
metric_of(f, r) = system("awk -F, '$2==\"" . r . "\"{s[$3]=1} END{n=split(\"" . METRICS . "\",m,\" \"); for(i=1;i<=n;i++)if(m[i] in s){print m[i];exit}}' '" . f . "'")
samples(f, r, m) = "< awk -F, '$2==\"" . r . "\"&&$3==\"" . m . "\"' '" . f . "'"
ranks_of(f) = system("awk -F, 'NR>1&&" . (SERVERS ? "1" : "$2+0==$2") . "&&!s[$2]++{print $2}' '" . f . "' | sort -V | head -n 12")
is_server(r) = r[1:1] eq "s"
who(r) = is_server(r) ? "server " . r[2:] : "worker " . r
dash_of(r) = is_server(r) ? 2 : 1
evaluates(f) = exists("MOST") ? system("grep -c evaluate_share '" . f . "'") + 0 > 0 : 0
colour_of(r) = worker_colour(is_server(r) ? r[2:] + 3 : r + 0)
list = ""
do for [i=1:n] { list = list . " '" . file(i) . "'" }
last = system("awk -F, '$1+0>m{m=$1} END{if(!m)m=1; print m}'" . list) + 0
# the legend stands once, for whoever is in any panel
everybody = ""
do for [i=1:n] {
    do for [r in ranks_of(file(i))] {
        if (strstrt(" " . everybody, " " . r . " ") == 0) { everybody = everybody . r . " " }
    }
}
if (every > 1) TITLE = sprintf("%s; every %s cell", TITLE, every == 2 ? "second" : every == 3 ? "third" : sprintf("%d.", every))
set multiplot layout n, 1 title TITLE font ",17" noenhanced margins 0.09, words(everybody) > 4 ? 0.60 : words(everybody) > 2 ? 0.72 : 0.86, 80.0 / HIGH, 1 - 90.0 / HIGH spacing 0, 60.0 / HIGH
set xrange [0:last]
# three tics a panel, of all panels alike
most = system("awk -F, '$3==\"" . word(METRICS, 1) . "\"&&$4+0>m{m=$4+0} END{print m+0}'" . list) * UNIT
tic = most > 0 ? 10 ** floor(log10(most / 2)) * floor(most / 2 / 10 ** floor(log10(most / 2))) : 1
if (exists("MOST")) { set yrange [0:MOST]; set ytics 0, 50, 100 } else { set yrange [0 : most > 0 ? 1.15 * most : 1]; set ytics 0, tic, 100 * tic }
do for [i=1:n] {
    f = file(i)
    set title name_of(f) font ",14" offset 0,-0.6
    set ylabel i == int((n + 1) / 2) ? LABEL : ""
    set xlabel i == n ? "seconds" : ""
    if (i == 1) { set key at screen 0.99, screen 1 - 90.0 / HIGH right top vertical maxcols 1 } else { unset key }
    mine = ranks_of(f)
    if (evaluates(f)) {
        plot for [r in everybody] keyentry with lines lw 2 dt dash_of(r) lc rgb colour_of(r) title who(r), \
             samples(f, "0", "evaluate_share") using 1:(100 * $4) with impulses lw 4 lc rgb "#dddddd" notitle, \
             for [r in mine] samples(f, r, metric_of(f, r)) using 1:(UNIT * $4) \
                with lines lw 1.5 dt dash_of(r) lc rgb colour_of(r) notitle
    } else {
        plot for [r in everybody] keyentry with lines lw 2 dt dash_of(r) lc rgb colour_of(r) title who(r), \
             for [r in mine] samples(f, r, metric_of(f, r)) using 1:(UNIT * $4) \
                with lines lw 1.5 dt dash_of(r) lc rgb colour_of(r) notitle
    }
}
unset multiplot
