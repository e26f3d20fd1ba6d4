# scaling.gp - speed-up by number of workers, with strong and weak scaling and
# the ideal line: reads table.csv. Strong: all workers share the batch of one
# worker. Weak: each worker has that batch.

DIR = ARG1; OUT = ARG2
WIDE = 1280
FILE = DIR . "/table.csv"
load "style.gp"
backends = values_of(FILE, "backend")
one_rate = system("awk -F, 'NR==1{for(i=1;i<=NF;i++)c[$i]=i;next} $c[\"workers\"]==1&&$c[\"tokens_per_s\"]>m{m=$c[\"tokens_per_s\"]} END{print m+0}' '" . FILE . "'") + 0
one_batch = system("awk -F, 'NR==1{for(i=1;i<=NF;i++)c[$i]=i;next} $c[\"workers\"]==1{print $c[\"global_batch\"];exit}' '" . FILE . "'") + 0
most = system("awk -F, 'NR==1{for(i=1;i<=NF;i++)c[$i]=i;next} $c[\"workers\"]>m{m=$c[\"workers\"]} END{print m+0}' '" . FILE . "'") + 0
crowd = system("awk -F, 'NR==1{for(i=1;i<=NF;i++)c[$i]=i;next} $c[\"oversubscribed\"]==1&&(!m||$c[\"workers\"]<m){m=$c[\"workers\"]} END{print m+0}' '" . FILE . "'") + 0
set multiplot layout 1, 2
set xlabel "workers"
set ylabel "speed-up over one worker"
set xtics 1
set xrange [0.8 : most + 0.3]
set yrange [0 : most + 0.3]
set key top left
set ytics 1
if (crowd) {
    set arrow 1 from crowd - 0.3, graph 0 to crowd - 0.3, graph 1 nohead dt 3 lc rgb "#8a4b00"
    set label 99 "‡ oversubscribed" at graph 0.99, graph 0.03 right tc rgb "#8a4b00"
}
strong(b) = stringcolumn("backend") eq b && column("global_batch") == one_batch ? column("tokens_per_s") / one_rate : NaN
weak(b) = stringcolumn("backend") eq b && column("global_batch") == one_batch * column("workers") ? column("tokens_per_s") / one_rate : NaN
set title "Strong scaling: the same global batch"
plot x with lines lw 1.5 dt 2 lc rgb "#999999" title "ideal", \
     for [b in backends] FILE using "workers":(strong(b)) smooth unique with linespoints lw 2 ps 1.3 pt backend_point(b) lc rgb backend_colour(b) title b
set title "Weak scaling: the same batch for each worker"
plot x with lines lw 1.5 dt 2 lc rgb "#999999" title "ideal", \
     for [b in backends] FILE using "workers":(weak(b)) smooth unique with linespoints lw 2 ps 1.3 pt backend_point(b) lc rgb backend_colour(b) title b
unset multiplot
