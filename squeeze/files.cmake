lockstep_backend(squeeze
  FILES squeeze/squeeze.c squeeze/topk.c squeeze/int8.c squeeze/sign.c
        squeeze/squeezed.c squeeze/units.c
  LINKS sync group telemetry cluster config base m)
# No fused multiply-add, so that workers on different machines decode the same
# numbers.
target_compile_options(squeeze PRIVATE -ffp-contract=off)
lockstep_test(squeeze LINKS squeeze)
include(tests/sync_cases.cmake)
lockstep_test(squeezed LINKS squeeze horovod_ring sync_cases)
include(tests/long.cmake)
if(TARGET test_squeezed)
  lockstep_long(squeezed $<TARGET_FILE:test_squeezed>)
endif()
