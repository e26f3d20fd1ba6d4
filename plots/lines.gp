# lines.gp - panel p with lines; shared by figures. FILE has a line for each
# point, and the lines are numbered. `ends` has the last number of each kind of
# line in each panel, in the order below.

from(kind) = ends[6 * (p - 1) + kind] + 1
to(kind) = ends[6 * (p - 1) + kind + 1]
has(kind) = to(kind) >= from(kind)
bands = has(1) ? ', for [i=from(1):to(1)] FILE using (x(i)):"least":"most" with filledcurves fs transparent solid 0.2 lc rgb colour[i] notitle' : ""
impulses = has(2) ? ', for [i=from(2):to(2)] FILE using (x(i)):"y" with impulses lw width[i] lc rgb colour[i] notitle' : ""
joined = has(3) ? ', for [i=from(3):to(3)] FILE using (x(i)):"y" with lines lw width[i] dt dash[i] lc rgb colour[i] notitle' : ""
ranges = has(4) ? ', for [i=from(4):to(4)] FILE using (x(i)):"y":"least":"most" with yerrorbars pt -1 lw width[i] lc rgb colour[i] notitle' : ""
points = has(5) ? ', for [i=from(5):to(5)] FILE using (x(i)):"y" with points pt point[i] ps size[i] lw width[i] lc rgb colour[i] notitle' : ""
in_key = has(6) ? ', for [i=from(6):to(6)] keyentry with linespoints lw width[i] dt dash[i] pt point[i] ps size[i] lc rgb colour[i] title name[i]' : ""
all = bands . impulses . joined . ranges . points . in_key
eval "plot " . all[3:]
