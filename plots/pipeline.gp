# pipeline.gp - when each stage computes each micro-batch: a step of a run, with
# a row for each rank, or the schedules of lockstep simulate. Forward is light,
# backward dark. Every second chunk of a stage is green instead of blue. The
# number in a box is that of the micro-batch.

load "style.gp"
set xrange [0:last > 0 ? last * 1.001 : 1]
set yrange [stages - 0.5:-0.5]
set ytics 0, 1, stages - 1
set ylabel row
unset grid
set key outside right top vertical maxcols 1
x(p) = column("panel") == p ? column("begin_ms") : NaN
box(p) = column("shown") > 0 ? (x(p) + column("end_ms")) / 2 : NaN
set multiplot layout panels, 1 title "A step of a pipeline: " . row . "s by time, numbered by micro-batch" font ",17" noenhanced \
    margins 0.06, chunks == 1 ? 0.84 : 0.75, 80.0 / HIGH, 1 - 90.0 / HIGH spacing 0, 80.0 / HIGH
do for [p=1:panels] {
    set title title[p] font ",14" offset 0, -0.5
    set xlabel (p == panels ? "ms since the step began" : "")
    plot FILE using (x(p)):(column(row)):"begin_ms":"end_ms":(column(row) - 0.42):(column(row) + 0.42):(hex(stringcolumn("colour"))) \
             with boxxyerror fs solid 1 border lc rgb "white" lc rgb variable notitle, \
         FILE using (box(p)):(column(row)):"micro":(hex(stringcolumn("letters"))) with labels tc rgb variable notitle, \
         for [i=1:keys] keyentry with boxes lc rgb key_colour[i] title key[i]
}
unset multiplot
