# gpu_timeline.gp - each worker's GPU by seconds, as NVML reports it:
# utilisation, memory, power and clock, the values of nvidia-smi. Reads util.csv
# of a run, or of the first repeat of the first cell that has GPU samples.

DIR = ARG1; OUT = ARG2
HIGH = 900
load "style.gp"
FILE = system("ls '" . DIR . "'/util.csv '" . DIR . "'/cells/*/r1/util.csv 2>/dev/null | xargs -d '\\n' grep -l gpu_util_share | grep -v \"'\" | head -n 1")
ranks = FILE eq "" ? "" : system("awk -F, '$3==\"gpu_util_share\"&&$2~/^[0-9]+$/&&!s[$2]++{print $2}' '" . FILE . "'")
last = FILE eq "" ? 1 : system("awk -F, '$1+0>m{m=$1} END{print m+0}' '" . FILE . "'") + 0
samples(r, m) = "< awk -F, '$2==\"" . r . "\"&&$3==\"" . m . "\"' '" . FILE . "'"
set xrange [0 : last > 0 ? last : 1]
set key outside right top vertical maxcols 1
set multiplot layout 4, 1 title "Each worker's GPU as NVML reports it, by seconds since training began" font ",17" noenhanced \
    margins 0.11, 0.86, 0.08, 0.93 spacing 0, 0.06
set offsets 0, 0, graph 0.1, 0
# two or three tics for each panel
most(m) = FILE eq "" ? 0 : system("awk -F, '$3==\"" . m . "\"&&$4>m{m=$4} END{print m+0}' '" . FILE . "'") + 0
unit(m) = 10 ** floor(log10(m / 2))
tic(m) = m > 0 ? unit(m) * floor(m / 2 / unit(m)) : 1
array M[4] = ["gpu_util_share", "gpu_memory_bytes", "gpu_power_w", "gpu_clock_mhz"]
array L[4] = ["GPU-Util (%)", "memory (MiB)", "power (W)", "SM clock (MHz)"]
array U[4] = [100, 1 / 1048576.0, 1, 1]
do for [i=1:4] {
    set ylabel L[i]
    if (i == 1) { set yrange [0:105] } else { set yrange [0:*] }
    step = i == 1 ? 50 : tic(most(M[i]) * U[i])
    set ytics 0, step
    if (i == 4) { set xlabel "seconds" }
    if (words(ranks) == 0) {
        set label 1 "no samples of a GPU" at graph 0.5, 0.5 center
        set yrange [0:1]
        plot NaN notitle
    } else {
        plot for [r in ranks] samples(r, M[i]) using 1:($4 * U[i]) \
            with lines lw (r + 0 < 4 ? 5 - r : 1.5) lc rgb worker_colour(r + 0) title "worker " . r
        unset key
    }
}
unset multiplot
