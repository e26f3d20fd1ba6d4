# sweep.gp - tokens a second by the values of one key, a line for each other
# setting, with least and most of the repeats: reads sweep.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/sweep.csv"
load "style.gp"
name = "($1==\"\"?\"\":$1 \" \") ($3==\"\"?\"\":$3 \"=\" $5)"
lines = system("awk -F, 'NR>1{s=" . name . "; if(!seen[s]++)printf \"\\\"%s\\\" \", s}' '" . FILE . "'")
rows(l) = "< awk -F, 'NR>1{s=" . name . "} NR>1&&s==\"" . l . "\"' '" . FILE . "'"
key_name = system("awk -F, 'NR==2{print $2}' '" . FILE . "'")
set title "Throughput by " . key_name
set xlabel key_name noenhanced
set ylabel "tokens per second"
set yrange [0:*]
set offsets graph 0.03, graph 0.03, graph 0.08, 0
set grid xtics ytics lc rgb "#e2e2e2" lt 1
set key outside right top vertical
numbers = system("awk -F, 'NR>1&&$4!=$4+0{n=1} END{print n+0}' '" . FILE . "'") + 0 == 0
if (numbers) {
    plot for [i=1:words(lines)] rows(word(lines, i)) using 4:6:7:8 with yerrorlines lw 2 ps 1.2 pt (4 + i) lc rgb worker_colour(i - 1) title word(lines, i)
} else {
    plot for [i=1:words(lines)] rows(word(lines, i)) using 0:6:7:8:xtic(4) with yerrorlines lw 2 ps 1.2 pt (4 + i) lc rgb worker_colour(i - 1) title word(lines, i)
}
