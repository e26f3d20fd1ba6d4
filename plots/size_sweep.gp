# size_sweep.gp - bus bandwidth by size, a line for each backend: reads
# sweep.txt, the output of sync_perf ("# ring, 2 workers: ..", then a row for
# each size).

DIR = ARG1; OUT = ARG2
FILE = DIR . "/sweep.txt"
load "style.gp"
# a word for each block, such as ring,2
blocks = system("awk '/workers:/{sub(/,/,\"\",$2); n=$2 \",\" $3; gsub(/[^a-z0-9,._-]/,\"\",n); print n}' '" . FILE . "'")
backend_of(k) = k[1:strstrt(k, ",")-1]
world_of(k) = int(k[strstrt(k, ",")+1:])
rows(k) = "< awk '/workers:/{sub(/,/,\"\",$2); on=($2 \",\" $3==\"" . k . "\");next} on&&$1+0>0{print $1 \",\" $6 \",\" $1/$8*1e-3*2*(" . sprintf("%d", world_of(k)) . "-1)/" . sprintf("%d", world_of(k)) . "}' '" . FILE . "'"
dash(k) = world_of(k) > 2 ? 2 : 1
colour(k) = backend_colour(backend_of(k))
name(k) = sprintf("%s, %d workers", backend_of(k), world_of(k))
set logscale xy 10
set title "Bus bandwidth of an exchange by size (dotted: law of the fitted link)"
set xlabel "size (bytes)"
set ylabel "busbw (GB/s)"
set format x "%.0s%c"
set format y "%g"
set key top left
plot for [k in blocks] rows(k) using 1:($2 > 0 ? $2 : NaN) with linespoints lw 2 ps 1.1 \
        dt dash(k) pt backend_point(backend_of(k)) lc rgb colour(k) title name(k), \
     for [k in blocks] rows(k) using 1:3 with lines lw 1.5 dt 3 lc rgb colour(k) notitle
