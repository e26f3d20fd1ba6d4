lockstep_library(squeeze
  FILES squeeze/squeeze.c squeeze/topk.c squeeze/int8.c squeeze/sign.c
  LINKS group config base m)
# No fused multiply-add, so that workers on different machines decode the same
# numbers.
target_compile_options(squeeze PRIVATE -ffp-contract=off)
lockstep_test(squeeze LINKS squeeze)
