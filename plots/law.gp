# law.gp - the time of an exchange and its law, a bar for each backend and
# number of workers: reads sweep.txt, the output of sync_perf, and takes the
# largest size of each block.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/sweep.txt"
load "style.gp"
# "ring,4,1254.5,1263.9": backend, workers, the law's and the measured ms
bars = system("awk '/workers:/{if(n)print r; sub(/,/,\"\",$2); n=$2 \",\" $3; gsub(/[^a-z0-9,._-]/,\"\",n)} !/^#/&&NF>8{r=n \",\" $8/1000 \",\" $4/1000} END{print r}' '" . FILE . "'")
size = system("awk '!/^#/&&NF>8&&$1>m{m=$1} END{printf \"%.0f\", m/1e6}' '" . FILE . "'")
part(i, k) = word(system("echo '" . word(bars, i) . "' | tr ',' ' '"), k)
N = words(bars)
set title sprintf("Exchange of %s MB: measured (line: law; above: difference from the law)", size)
set ylabel "milliseconds"
set yrange [0:*]
set offsets 0, 0, graph 0.12, 0
set bmargin 4
set xrange [0.4:N + 0.6]
set boxwidth 0.6
unset key
unset xtics
set xtics nomirror ()
set for [i=1:N] xtics add (sprintf("%s\n%s workers", part(i, 1), part(i, 2)) i)
plot for [i=1:N] "+" every ::0::0 using (i):(part(i, 4) + 0) with boxes lc rgb backend_colour(part(i, 1)), \
     for [i=1:N] "+" every ::0::0 using (i - 0.38):(part(i, 3) + 0):(0.76):(0) with vectors nohead lw 3 lc rgb "#111111", \
     for [i=1:N] "+" every ::0::0 using (i):(part(i, 4) + 0):(sprintf("%+.1f%%", 100 * (part(i, 4) / part(i, 3) - 1))) \
        with labels offset 0, 0.9 tc rgb "#222222"
