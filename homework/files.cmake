lockstep_backend(homework
  FILES homework/homework.c homework/real_lab.c
  LINKS sync group cluster base ${CMAKE_DL_LIBS})
