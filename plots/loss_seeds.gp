# loss_seeds.gp - validation loss by seconds, a panel for each rate of the
# links: reads curves.csv. Cells that differ only by seed= are one line: the
# mean of their losses, in a band from the least to the greatest.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/curves.csv"
# c: the name of a cell without its seed and its link. net: that link.
NAME = "c=$1; sub(/ seed=[^ ]*/,\"\",c); net=match(c,/net=[^ ]*/)?substr(c,RSTART,RLENGTH):\"\"; sub(/ ?net=[^ ]*/,\"\",c);"
HEAD = "awk -F, 'NR==1{for(i=1;i<=NF;i++)k[$i]=i;next} $k[\"val_loss\"]!=\"\"{" . NAME
nets = system(HEAD . " if(!s[net]++)printf \"\\\"%s\\\" \",net}' '" . FILE . "'")
cells = system(HEAD . " if(!s[c]++)printf \"\\\"%s\\\" \",c}' '" . FILE . "'")
n = words(cells); panels = words(nets)
HIGH = 90 + 470 * panels
load "style.gp"
# step, mean seconds, and mean, least and greatest loss over the seeds, by step
rows(net, c) = "< " . HEAD . " if(net==\"" . net . "\"&&c==\"" . c . "\"){x=$k[\"step\"]; y=$k[\"val_loss\"]; n[x]++; t[x]+=$k[\"train_s\"]; l[x]+=y; if(n[x]==1||y<a[x])a[x]=y; if(n[x]==1||y>b[x])b[x]=y}} END{for(x in n)print x \",\" t[x]/n[x] \",\" l[x]/n[x] \",\" a[x] \",\" b[x]}' '" . FILE . "' | sort -n"
backend(c) = system(HEAD . " if(c==\"" . c . "\"){print $k[\"backend\"];exit}}' '" . FILE . "'")
# The backend's colour if each backend has one line, else a colour for each
# line.
array C[n]; array B[n]
shared = 0
do for [i=1:n] {
    C[i] = word(cells, i)
    B[i] = backend(C[i])
    do for [j=1:i-1] { if (B[j] eq B[i]) { shared = 1 } }
}
colour(i) = shared ? worker_colour(i - 1) : backend_colour(B[i])
dash(i) = 1 + (i - 1) / 6
point(i) = word("7 5 9 11 13 15", 1 + (i - 1) % 6) + 0
set ylabel "validation loss (nats a token)"
set xlabel "seconds of training steps, without evaluation"
set xrange [0:*]
set style fill transparent solid 0.2 noborder
set multiplot layout panels, 1
do for [p=1:panels] {
    net = word(nets, p)
    set title "Validation loss by seconds" . (net eq "" ? "" : ", " . net) . " (band: least to most over the seeds)"
    if (crowded(FILE)) { set label 99 note(FILE) at graph 0.01, graph 0.03 tc rgb "#8a4b00" }
    plot for [i=1:n] rows(net, C[i]) using 2:4:5 with filledcurves lc rgb colour(i) notitle, \
         for [i=1:n] rows(net, C[i]) using 2:3 with linespoints lw 2.5 dt dash(i) pt point(i) ps 0.9 lc rgb colour(i) title C[i]
}
unset multiplot
