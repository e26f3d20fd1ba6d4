# The collectives of textbooks. Training does not use them.
lockstep_library(textbook
  FILES textbook/schedule.c
  LINKS group law base)
lockstep_test(schedule LINKS textbook)
