# trace_timetable.awk - step `want` of a trace.json as a timetable.csv: the
# times at which each rank computed each micro-batch, from the moment when the
# first rank began the step. A rank with several chunks computes a micro-batch
# once for each chunk; backward begins with the last chunk.

BEGIN { n = 0; top = 0; zero = "" }
function number(key) {
    if (!match($0, "\"" key "\": [0-9.]+"))
        return ""
    return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0
}
/"name": "step"/ {
    step[number("pid")] = number("step")
    if (number("step") == want && (zero == "" || number("ts") < zero))
        zero = number("ts")
}
/"name": "(forward|backward)".*"micro":/ {
    if (step[number("pid")] != want)
        next
    action[n] = $0 ~ /"forward"/ ? "forward" : "backward"
    row[n] = number("pid") "," action[n] "," number("micro")
    chunk[n] = taken[row[n]]++
    if (chunk[n] > top)
        top = chunk[n]
    begin[n] = number("ts")
    end[n++] = number("ts") + number("dur")
}
END {
    print "schedule,stage,action,micro,chunk,begin_ms,end_ms"
    for (i = 0; i < n; i++)
        printf "step_%d,%s,%d,%.3f,%.3f\n", want, row[i],
            action[i] == "forward" ? chunk[i] : top - chunk[i],
            (begin[i] - zero) / 1000, (end[i] - zero) / 1000
}
