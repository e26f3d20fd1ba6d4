# heatmap.gp - tokens a second by the values of two keys, a panel for each named
# cell; or by those of one key, a row for each named cell: reads sweep.csv.

DIR = ARG1; OUT = ARG2
# With one key the named cells are the rows.
SWEEP = "awk -F, -v OFS=, 'NR==2{one=$3==\"\"} NR>1&&one{$5=$1;$1=\"\"} {print}' '" . DIR . "/sweep.csv' | "
series = system(SWEEP . "awk -F, 'NR>1&&!s[$1]++{printf \"\\\"%s\\\" \", $1}'")
n = words(series) > 4 ? 4 : words(series)
across = n > 1 ? 2 : 1
down = (n + across - 1) / across
WIDE = across > 1 ? 1280 : 960
HIGH = 100 + 440 * down
load "style.gp"
# x and y as numbers in the order of appearance, tokens/s, and the values of x
# and y
rows(i) = "< " . SWEEP . "awk -F, 'NR>1{if(!($4 in x))x[$4]=nx++; if(!($5 in y))y[$5]=ny++} NR>1&&$1==\"" . word(series, i) . "\"{print x[$4] \",\" y[$5] \",\" $6 \",\" $4 \",\" $5}'"
x_key = system(SWEEP . "awk -F, 'NR==2{print $2}'")
y_key = system(SWEEP . "awk -F, 'NR==2{print $3}'")
# light to dark, different in grey as well
set palette defined (0 "#f4f8fb", 0.5 "#6ba6d6", 1 "#173f6e")
least = system(SWEEP . "awk -F, 'NR>1&&(m==\"\"||$6<m){m=$6} END{print m}'") + 0
most = system(SWEEP . "awk -F, 'NR>1&&$6>m{m=$6} END{print m+0}'") + 0
set cbrange [least < most ? least : 0 : most > 0 ? most : 1]
set xlabel x_key noenhanced
set ylabel y_key noenhanced
set xtics noenhanced
set ytics noenhanced
unset grid
unset key
set xrange [-0.5:*] noextend
rows_of_y = system(SWEEP . "awk -F, 'NR>1&&!s[$5]++{n++} END{print n+0}'") + 0
set yrange [-0.5 : rows_of_y - 0.5]
if (system(SWEEP . "awk -F, 'NR==2{print $5}'") eq "") { unset ytics }
unset colorbox # each field shows its number
set multiplot layout down, across
do for [i=1:n] {
    set title (word(series, i) eq "" ? "" : word(series, i) . ": ") . "tokens per second"
    plot rows(i) using 1:2:(0.5):(0.5):3:xtic(4):ytic(5) with boxxyerror fs solid noborder palette, \
         rows(i) using 1:2:(sprintf("%.0f", $3)):($3 > (least + most) / 2 ? 0xffffff : 0x111111) with labels tc rgb variable
}
unset multiplot
