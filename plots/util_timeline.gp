# util_timeline.gp - compute share of each worker ten times a second: reads
# util.csv of a run, or of the first repeat of up to six cells.

DIR = ARG1; OUT = ARG2
files = system("ls '" . DIR . "'/util.csv '" . DIR . "'/cells/*/r1/util.csv 2>/dev/null | head -6 | sed 's/.*/\"&\"/'")
n = words(files)
HIGH = n > 1 ? 90 + 190 * n : 420
load "style.gp"
name_of(f) = system("dirname '" . f . "' | sed 's,/r1$,,; s,.*/,,'")
samples(f, r) = "< awk -F, '$2==\"" . r . "\"&&$3==\"compute_share\"' '" . f . "'"
set multiplot layout n, 1 title "Utilisation of each worker" font ",15" noenhanced
set yrange [0:105]
set ytics 0, 50, 100
set xrange [0:*]
set ylabel "computing (%)"
set key outside right top
do for [i=1:n] {
    f = word(files, i)
    ranks = system("awk -F, 'NR>1&&$2+0==$2&&!s[$2]++{print $2}' '" . f . "'")
    set title name_of(f) font ",12"
    set xlabel (i == n ? "seconds since training began" : "")
    plot for [r in ranks] samples(f, r) using 1:(100 * $4) \
        with lines lw 1.5 lc rgb worker_colour(r + 0) title "worker " . r
}
unset multiplot
