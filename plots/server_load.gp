# server_load.gp - processor time of each server: reads table.csv, and the rows of
# ranks s0, s1 .. in util.csv of a run or of the first repeat of every cell.

DIR = ARG1; OUT = ARG2
load "style.gp"
# name,percent,backend
rows = "< awk -F, 'FILENAME~/table.csv$/{if(FNR==1)for(i=1;i<=NF;i++)if($i==\"backend\")b=i; c=$1; gsub(/[,_]/,\" \",c); of[c]=$b; next} FNR==1{next} $2~/^s[0-9]/&&$3==\"cpu_share\"{f=FILENAME; sub(/\\/util.csv$/,\"\",f); sub(/\\/r1$/,\"\",f); sub(/.*\\//,\"\",f); gsub(/[,_]/,\" \",f); k=f \" \" $2; s[k]+=$4; n[k]++; in_[k]=of[f]} END{for(k in s)print k \",\" 100*s[k]/n[k] \",\" in_[k]}' $(ls '" . DIR . "'/table.csv 2>/dev/null; ls '" . DIR . "'/util.csv '" . DIR . "'/cells/*/r1/util.csv 2>/dev/null) | sort"
n = system(substr(rows, 3, strlen(rows)) . " | wc -l") + 0
set title "Load of each server: processor time as a share of its threads' time"
set xlabel "processor time (%)"
set xrange [0:*]
set yrange [(n > 0 ? n : 1) - 0.5 : -0.5]
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set ytics noenhanced
unset key
if (n == 0) {
    set label 1 "no run had a server" at graph 0.5, 0.5 center
    plot NaN
} else {
    plot rows using ($2 / 2):0:($2 / 2):(0.36):(hex(backend_colour(stringcolumn(3)))):ytic(stringcolumn(1)) with boxxyerror lc rgb variable, \
         rows using 2:0:(sprintf("  %.0f%%", $2)) with labels left
}
