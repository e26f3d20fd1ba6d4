lockstep_backend(outer
  FILES outer/outer.c
  LINKS sync group cluster base OpenMP::OpenMP_C)
# No fused multiply-add, so that replicas on different machines compute the same
# sums.
target_compile_options(outer PRIVATE -ffp-contract=off)
include(tests/sync_cases.cmake)
foreach(test outer outer_state)
  lockstep_test(${test} LINKS outer horovod_ring sync_cases)
endforeach()
