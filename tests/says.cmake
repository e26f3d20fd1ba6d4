# lockstep_says(NAME STATUS PATTERN PROGRAM WORDS...): a test that PROGRAM ends
# with STATUS and prints a text that PATTERN matches (tests/says.sh).
include_guard(GLOBAL)
function(lockstep_says name status pattern)
  add_test(NAME ${name} COMMAND bash ${CMAKE_SOURCE_DIR}/tests/says.sh ${status}
                                "${pattern}" ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()
add_test(NAME says COMMAND bash ${CMAKE_SOURCE_DIR}/tests/says.sh --self-test)
