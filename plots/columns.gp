# columns.gp - columns; shared by figures. FILE is like that of bars.gp, but
# `place` is on the x axis, and a bar stands there up to `most`. A text is
# `value`, printed by the form `number` above `most`. With `n` above 0 each
# place from 1 to n has a label.

x(what) = stringcolumn("what") eq what ? column("place") : NaN
if (n > 0) {
    set xrange [0.4:n + 0.6]
    set xtics ()
    # labels that are too long for their place are turned
    if (room[1] * n > 0.85 * WIDE) {
        set xtics rotate by -25
        set rmargin at screen 1 - (20 + 0.91 * room[1]) / WIDE
        set bmargin at screen (50 + 0.42 * room[1]) / HIGH
    }
    set for [i=1:n] xtics add (label[i] . (exists("under") ? "\n" . under[i] : "") i)
}
columns = have[1] ? ', FILE using (x("bar")):"most":(2 * column("half")):(hex(stringcolumn("colour"))) with boxes lc rgb variable notitle' : ""
points = have[3] ? ', FILE using (x("repeat")):"most" with points pt 7 ps 0.5 lc rgb "#2b6cb0" notitle' : ""
laws = have[4] ? ', FILE using (x("law") - column("half")):"most":(2 * column("half")):(0) with vectors nohead lw 3 lc rgb "#111111" notitle' : ""
texts = have[5] ? ', FILE using (x("text")):"most":(sprintf(number, column("value"))) with labels offset 0, 0.6 tc rgb "#222222" notitle' : ""
in_key = keys ? ', for [i=1:keys] keyentry with boxes lc rgb key_colour[i] title key[i]' : ""
all = columns . points . laws . texts . in_key
eval "plot " . all[3:]
