# util_timeline.gp - compute share of each worker ten times a second, of its GPU
# in each step where it has one: reads util.csv of a run, or of the first repeat
# of every k-th cell, seven at most.

DIR = ARG1; OUT = ARG2
# in the order of table.csv, where there is one
all = system("cd '" . DIR . "'; [ -f util.csv ] && echo '\"util.csv\"' || awk -F, 'NR>1{c=$1; gsub(/ /,\"_\",c); f=\"cells/\" c \"/r1/util.csv\"; if((getline l < f)>=0) print \"\\\"\" f \"\\\"\"}' table.csv")
every = int((words(all) + 6) / 7)
n = every ? int((words(all) + every - 1) / every) : 0
file(i) = DIR . "/" . word(all, 1 + (i - 1) * every)
HIGH = n > 1 ? 90 + 150 * n : 420
load "style.gp"
name_of(f) = system("dirname '" . f . "' | sed 's,/r1$,,; s,.*/,,; s,_, ,g'")
of_gpu(f, r) = system("awk -F, '$2==\"" . r . "\"&&$3==\"gpu_compute_share\"{n=1;exit} END{print n+0}' '" . f . "'") + 0
samples(f, r) = "< awk -F, '$2==\"" . r . "\"&&$3==\"" . (of_gpu(f, r) ? "gpu_" : "") . "compute_share\"' '" . f . "'"
set multiplot layout n, 1 title "Utilisation of each worker, by seconds since training began" font ",15" noenhanced
set yrange [0:105]
set ytics 0, 50, 100
list = ""
do for [i=1:n] { list = list . " '" . file(i) . "'" }
set xrange [0 : system("awk -F, '$1+0>m{m=$1} END{if(!m)m=1; print m}'" . list) + 0]
set ylabel "computing (%)"
set key outside right top vertical maxcols 1
do for [i=1:n] {
    f = file(i)
    ranks = system("awk -F, 'NR>1&&$2+0==$2&&!s[$2]++{print $2}' '" . f . "'")
    set title name_of(f) font ",12"
    plot for [r in ranks] samples(f, r) using 1:(100 * $4) \
        with lines lw 1.5 lc rgb worker_colour(r + 0) title "worker " . r
}
unset multiplot
