# Collectives as textbooks teach them: for bench and simulate alone.
lockstep_library(textbook
  FILES textbook/schedule.c
  LINKS group law base)
lockstep_test(schedule LINKS textbook)
