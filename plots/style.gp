# style.gp - the look of all figures. Every other .gp begins with
#
#     DIR = ARG1; OUT = ARG2      # gnuplot [-e "SIZE='1600x900'"] -c NAME.gp FOLDER FILE
#     load "style.gp"
# FILE ends in .svg or .png. A PNG has two pixels for each point, so that it is
# sharp on a slide. With SIZE a figure has that size in pixels, and its letters
# grow with it. At the normal size no letter is smaller than 14 points.
# A backend has the same colour in all figures. The colours differ in lightness
# as well as in hue, so that they stay different for colour-blind people and in
# grey print.

set encoding utf8
set datafile separator ","
set datafile missing NaN # a line is drawn across missing points
SVG = strlen(OUT) > 4 && OUT[strlen(OUT)-3:] eq ".svg"
if (!exists("WIDE")) WIDE = 1120
if (!exists("HIGH")) HIGH = 640
ZOOM = SVG ? 1 : 2
if (exists("SIZE")) {
    by = strstrt(SIZE, "x")
    ZOOM = real(SIZE[1:by-1]) / WIDE < real(SIZE[by+1:]) / HIGH ? real(SIZE[1:by-1]) / WIDE : real(SIZE[by+1:]) / HIGH
    WIDE = real(SIZE[1:by-1]) / ZOOM; HIGH = real(SIZE[by+1:]) / ZOOM
}
if (SVG) {
    set terminal svg size WIDE * ZOOM, HIGH * ZOOM dynamic font "DejaVu Sans,14" fontscale ZOOM linewidth ZOOM background "white"
} else {
    set terminal pngcairo size WIDE * ZOOM, HIGH * ZOOM font "DejaVu Sans,14" fontscale ZOOM linewidth ZOOM pointscale ZOOM background "white"
}
set output OUT

set border 3 lc rgb "#555555"
set grid ytics lc rgb "#e2e2e2" lt 1
set xtics nomirror
set ytics nomirror
set tics textcolor rgb "#333333"
set key top right samplen 2 spacing 1.2 textcolor rgb "#222222" noenhanced
set title font ",17" noenhanced offset 0,-0.3
set style fill solid 1.0 noborder

# backends, from their table: the name, colour and point of each
ROWS = system('grep -oE ''^BACKEND\("\w+|colour = "#\w+|point = [0-9]+'' ../core/config/backends.def | sed ''s/.*[ ("]//'' | tr "\n" " "')
BACKENDS = ""
do for [i=1:words(ROWS):3] {
    BACKENDS = BACKENDS . word(ROWS, i) . " "
    eval sprintf('colour_%s = "%s"', word(ROWS, i), word(ROWS, i + 1))
    eval sprintf('point_%s = %s', word(ROWS, i), word(ROWS, i + 2))
}
backend_colour(b) = exists("colour_" . b) ? value("colour_" . b) : "#888888"
backend_point(b) = exists("point_" . b) ? value("point_" . b) : 11

# kinds of a step's time: computing is blue, communication and waiting orange
KINDS = "data forward backward update slowed exposed wait other gpu_compute gpu_idle"
kind_colour(k) = \
    k eq "data"     ? "#8c8c8c" : k eq "forward" ? "#c2dcf0" : \
    k eq "backward" ? "#6ba6d6" : k eq "update"  ? "#235a97" : \
    k eq "exposed"  ? "#c2410c" : k eq "wait"    ? "#f5b06f" : \
    k eq "slowed"   ? "#45257a" : k eq "gpu_compute" ? "#3f8f4f" : "#e4e4e4"
kind_title(k) = k eq "exposed" ? "exposed transfer" : k eq "slowed" ? "slowed on purpose" : \
    k eq "gpu_compute" ? "GPU computes" : k eq "gpu_idle" ? "GPU does not" : \
    k eq "gpu_comm" ? "GPU in collectives" : k

# workers of one run
worker_colour(i) = word("#2b6cb0 #f2b04c #222222 #2ba58d #9a3412 #888888", 1 + int(i) % 6)

# a hex colour as the number that `lc rgb variable` needs
hex(c) = int(sprintf("0x%s", c[2:7]))

# the values of a column, each once, quoted for word()
values_of(file, name) = system(sprintf(\
    "awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"%s\")k=i;next} !seen[$k]++{printf \"\\\"%%s\\\" \", $k}' '%s'", \
    name, file))

# the value of a column in the row of a cell
value_at(file, cell, name) = system(sprintf(\
    "awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"%s\")k=i;next} $1==\"%s\"{print $k;exit}' '%s'", \
    name, cell, file))

# whether a file has a column, and a number in it
has_numbers(file, name) = system(sprintf(\
    "awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"%s\")k=i;next} k&&$k+0>0{n=1} END{print n+0}' '%s'", \
    name, file)) + 0

# the note on every figure whose runs had more threads than cores
crowded(file) = system(sprintf(\
    "awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"oversubscribed\")k=i;next} k&&$k==1{n=1} END{print n+0}' '%s'", \
    file)) + 0
note(file) = crowded(file) ? \
    "‡ oversubscribed: more threads than cores, so workers share cores" : ""
mark(o) = int(o + 0) ? " ‡" : ""

# repeated(): whether some cell of table.csv ran more than once. end_of(): one end
# of a cell's range. A cell that ran once has no range, so its end is NaN.
repeated(file) = system(sprintf(\
    "awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"n\")k=i;next} k&&$k>1{n=1} END{print n+0}' '%s'", \
    file)) + 0
end_of(name) = column("n") > 1 ? column(name) : NaN
