# gpu_timeline.gp - each worker's GPU by seconds, as NVML reports it:
# utilisation, memory, power and clock, the values of nvidia-smi, in the first
# run that has samples of a GPU.

load "style.gp"
set xrange [0:last]
set offsets 0, 0, graph 0.1, 0
set multiplot layout panels, 1 title "Each worker's GPU as NVML reports it, by seconds" . of font ",17" noenhanced \
    margins 0.11, 1 - (key_room + 12.0) / WIDE, 0.08, 0.93 spacing 0, 0.06
do for [p=1:panels] {
    set ylabel axis[p]
    set xlabel (p == panels ? "seconds" : "")
    set ytics 0, tic[p]
    if (p == 1) { set yrange [0:105] } else { set yrange [0:*] }
    load "lines.gp"
}
unset multiplot
