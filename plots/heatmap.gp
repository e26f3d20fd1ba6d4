# heatmap.gp - tokens a second by the values of two keys, a panel for each named
# cell; or by those of one key, a row for each named cell.

load "style.gp"
# light to dark, different in grey as well
set palette defined (0 "#f4f8fb", 0.5 "#6ba6d6", 1 "#173f6e")
unset colorbox # each field shows its number
set cbrange [least < most ? least : 0 : most > 0 ? most : 1]
unset grid
unset key
set xlabel x_key
set ylabel y_key
set xrange [-0.5:columns - 0.5]
set yrange [-0.5:rows - 0.5]
set xtics ()
set for [i=1:columns] xtics add (x_label[i] i - 1)
set ytics ()
set for [i=1:rows] ytics add (y_label[i] i - 1)
x(p) = column("panel") == p ? column("column") : NaN
set multiplot layout (panels + across - 1) / across, across
do for [p=1:panels] {
    set title title[p] . "tokens per second"
    plot FILE using (x(p)):"row":(0.5):(0.5):"tokens_per_s" with boxxyerror fs solid noborder palette, \
         FILE using (x(p)):"row":(sprintf("%.0f", column("tokens_per_s"))):(column("tokens_per_s") > (least + most) / 2 ? 0xffffff : 0x111111) \
             with labels tc rgb variable
}
unset multiplot
