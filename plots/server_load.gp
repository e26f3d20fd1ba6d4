# server_load.gp - how busy each server is: reads util.csv of a run, or of the
# first repeat of every cell, rows of ranks s0, s1 ...

DIR = ARG1; OUT = ARG2
load "style.gp"
rows = "< awk -F, 'FNR==1{next} $2~/^s[0-9]/&&$3==\"cpu_share\"{f=FILENAME; sub(/\\/util.csv$/,\"\",f); sub(/\\/r1$/,\"\",f); sub(/.*\\//,\"\",f); gsub(/[,_]/,\" \",f); k=f \" \" $2; s[k]+=$4; n[k]++} END{for(k in s)print k \",\" 100*s[k]/n[k]}' $(ls '" . DIR . "'/util.csv '" . DIR . "'/cells/*/r1/util.csv 2>/dev/null) | sort"
n = system(substr(rows, 3, strlen(rows)) . " | wc -l") + 0
set title "Load of each server: share of its threads' time"
set xlabel "processor time (%)"
set xrange [0:*]
set yrange [n - 0.5 : -0.5]
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set ytics noenhanced
unset key
plot rows using ($2 / 2):0:($2 / 2):(0.36):ytic(stringcolumn(1)) with boxxyerror lc rgb "#9a3412", \
     rows using 2:0:(sprintf("  %.0f%%", $2)) with labels left font ",11"
