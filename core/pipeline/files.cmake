lockstep_library(pipeline
  FILES core/pipeline/timetable.c
  LINKS base m)
lockstep_test(timetable LINKS pipeline)
