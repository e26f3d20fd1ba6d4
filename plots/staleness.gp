# staleness.gp - the number of updates by others between a worker's pull and its
# push: reads column lag of steps.csv of the first repeat of every cell.

DIR = ARG1; OUT = ARG2
load "style.gp"
files = system("ls '" . DIR . "'/cells/*/r1/steps.csv '" . DIR . "'/steps.csv 2>/dev/null | grep -v \"'\" | sed 's/.*/\"&\"/'")
n = words(files)
name_of(f) = system("dirname '" . f . "' | sed 's,/r1$,,; s,.*/,,; s,_, ,g'")
count(f) = "< awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"lag\")k=i;next} {c[$k+0]++;n++} END{for(l in c)print l \",\" 100*c[l]/n}' '" . f . "' | sort -n"
set title "Staleness: updates by others between pull and push"
set xlabel "updates"
set ylabel "share of all steps (%)"
set xtics 1
set xrange [-0.6:*]
set yrange [0:*]
shades = "#1a1a1a #9a3412 #2b6cb0 #2ba58d #f2b04c #b9a3d6" # dark to light
wide = 0.85 / n
plot for [i=1:n] count(word(files, i)) using ($1 - 0.425 + (i - 0.5) * wide):2:(wide * 0.95) \
    with boxes lc rgb word(shades, 1 + (i - 1) % 6) title name_of(word(files, i))
