# lockstep_long(NAME PROGRAM WORDS...): a long test, which runs only with ctest -C long or
# ./check --long. Its environment has LOCKSTEP_LONG=1; tests in C call test_long().
include_guard(GLOBAL)
function(lockstep_long name)
  add_test(NAME ${name}_long COMMAND ${ARGN} CONFIGURATIONS long
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name}_long PROPERTIES LABELS long TIMEOUT 3600
                       ENVIRONMENT "LOCKSTEP_LONG=1;OMP_NUM_THREADS=1"
                       SKIP_RETURN_CODE 77)
endfunction()
