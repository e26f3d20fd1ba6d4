# style.gp - the look of all figures; every other script begins with it.
#
# Python prepares a figure (study/lockstep/figures.py) and runs gnuplot -e
# VARIABLES NAME.gp. A script only draws: it reads FILE, the figure's CSV, and
# variables of texts, colours and counts. It writes OUT, an .svg or a .png. A
# PNG has two pixels for each point, so that it is sharp on a slide. With SIZE a
# figure has that size in pixels, and its letters grow with it. At the normal
# size no letter is smaller than 14 points.

set encoding utf8
set datafile separator ","
set datafile columnheaders # the first line is never a row
set datafile commentschars ""
set datafile missing NaN # a line is drawn across points of other lines
SVG = OUT[strlen(OUT)-3:] eq ".svg"
if (!exists("WIDE")) WIDE = 1120
if (!exists("HIGH")) HIGH = 640
ZOOM = SVG ? 1 : 2
if (exists("SIZE")) {
    X = strstrt(SIZE, "x")
    ACROSS = real(SIZE[1:X-1]); DOWN = real(SIZE[X+1:])
    ZOOM = ACROSS / WIDE < DOWN / HIGH ? ACROSS / WIDE : DOWN / HIGH
    WIDE = ACROSS / ZOOM; HIGH = DOWN / ZOOM
}
if (SVG) {
    set terminal svg size WIDE * ZOOM, HIGH * ZOOM dynamic font "DejaVu Sans,14" fontscale ZOOM linewidth ZOOM background "white"
} else {
    set terminal pngcairo size WIDE * ZOOM, HIGH * ZOOM font "DejaVu Sans,14" fontscale ZOOM linewidth ZOOM pointscale ZOOM background "white"
}
set output OUT

set border 3 lc rgb "#555555"
set grid ytics lc rgb "#e2e2e2" lt 1
set xtics nomirror noenhanced
set ytics nomirror noenhanced
set tics textcolor rgb "#333333"
set key top right samplen 2 spacing 1.2 textcolor rgb "#222222" noenhanced
set title font ",17" noenhanced offset 0,-0.3
set xlabel noenhanced
set ylabel noenhanced
set style fill solid 1.0 noborder

# A panel of several: panel p of `panels`.
p = 1

# The note at the lower edge. An x label ends with `below`, an empty line for it.
if (!exists("note")) note = ""
below = note eq "" ? "" : "\n "
set label 99 note at screen 0.5, screen 13.0 / HIGH center tc rgb "#8a4b00" noenhanced

# x of line i, and nothing for the points of other lines
x(i) = column("number") == i ? column("x") : NaN

# The key to the right of the plot, if Python left room for it: key_room pixels.
if (!exists("key_room")) key_room = 0
if (key_room) {
    set key at screen 1 - 12.0 / WIDE, graph 1 right top vertical maxrows 600
    set rmargin at screen 1 - (key_room + 12.0) / WIDE
}

# of a figure that is not prepared by a function of Python, but reads runs.csv
backend_colour(b) = exists("colour_" . b) ? value("colour_" . b) : "#888888"
backend_point(b) = exists("point_" . b) ? value("point_" . b) : 11

# a hex colour as the number that `lc rgb variable` needs
hex(c) = int(sprintf("0x%s", c[2:7]))
