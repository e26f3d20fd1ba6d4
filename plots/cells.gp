# cells.gp - shared by figures with a row or a line for each cell: the cells of
# FILE, their names without the settings that all of them have, and a height for
# this number of rows.

load "style.gp"
cells = values_of(FILE, "cell")
n = words(cells)
names = system("awk -F, 'NR==1{for(i=1;i<=NF;i++)if($i==\"cell\")k=i;next} !seen[$k]++{c[++n]=$k; m=split($k,w,\" \"); for(i=1;i<=m;i++)if(index(w[i],\"=\"))all[w[i]]++} END{for(j=1;j<=n;j++){m=split(c[j],w,\" \"); s=\"\"; for(i=1;i<=m;i++)if(n==1||all[w[i]]<n)s=s (s==\"\"?\"\":\" \") w[i]; printf \"\\\"%s\\\" \", s==\"\"?c[j]:s}}' '" . FILE . "'")
number_of(c) = (sum [i=1:n] (word(cells, i) eq c ? i : 0))
shown(c) = number_of(c) ? word(names, number_of(c)) : c
if (n > 17) HIGH = 130 + 27 * n; load "style.gp"
