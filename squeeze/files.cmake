lockstep_library(squeeze
  FILES squeeze/squeeze.c squeeze/topk.c squeeze/int8.c squeeze/sign.c
        squeeze/power.c squeeze/cosines.c
  LINKS group config base m)
lockstep_backend(squeezed
  FILES squeeze/squeezed.c squeeze/travel.c squeeze/messages.c
        squeeze/scatter.c squeeze/sums.c squeeze/residuals.c squeeze/units.c
  LINKS squeeze sync law optim group telemetry cluster config base)
# No fused multiply-add, so that workers on different machines decode the same
# numbers.
foreach(library squeeze squeezed)
  target_compile_options(${library} PRIVATE -ffp-contract=off)
endforeach()
lockstep_test(squeeze LINKS squeeze)
lockstep_test(power LINKS squeeze)
lockstep_test(demo LINKS squeeze)
include(tests/sync_cases.cmake)
lockstep_test(squeezed LINKS zero squeezed horovod_ring ps_tests)
lockstep_test(squeeze_reruns LINKS zero squeezed horovod_ring ps_tests)
lockstep_test(zero_squeeze LINKS zero squeezed horovod_ring ps_tests)
lockstep_test(squeeze_state LINKS zero squeezed horovod_ring ps_tests)
lockstep_test(squeeze_freeze LINKS zero squeezed horovod_ring ps_tests)
include(tests/long.cmake)
if(TARGET test_squeezed)
  lockstep_long(squeezed $<TARGET_FILE:test_squeezed>)
  # There are more processes than cores, so waiting threads must not spin.
  set_tests_properties(squeezed squeeze_reruns squeeze_state zero_squeeze
                       squeeze_freeze PROPERTIES ENVIRONMENT OMP_NUM_THREADS=1)
endif()
if(COMMAND lockstep_fuzz)
  lockstep_fuzz(squeeze LINKS squeeze)
endif()
