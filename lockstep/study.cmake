# Tests of the Python package study/lockstep.
find_package(Python3 COMPONENTS Interpreter)
include(tests/long.cmake)
if(Python3_FOUND)
  set(tests study study_since study_locales hostile answers notebook verify
            experiments doctor_hosts)
  # What only Python does is not done again under a sanitizer.
  if(NOT LOCKSTEP_SANITIZE)
    list(APPEND tests stranger run_measures)
    lockstep_long(stranger ${Python3_EXECUTABLE} tests/stranger.py
                  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep)
    # The mutants read the runs that the oracle has kept.
    foreach(test study_oracle study_mutants)
      add_test(NAME ${test} COMMAND ${Python3_EXECUTABLE} tests/${test}.py
                                    ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
                                    ${CMAKE_BINARY_DIR}/study_oracle
               WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    endforeach()
    set_tests_properties(study_oracle PROPERTIES FIXTURES_SETUP studies)
    set_tests_properties(study_mutants PROPERTIES FIXTURES_REQUIRED studies)
    lockstep_long(study_mutants ${Python3_EXECUTABLE} tests/study_mutants.py
                  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep)
    add_test(NAME figures COMMAND ${Python3_EXECUTABLE} tests/draw.py plots
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    # Random jobs: those that have found mistakes, and the first cases of a seed. The
    # long test draws an hour of others.
    set(random_jobs ${Python3_EXECUTABLE} tests/random_jobs/main.py
                    ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep)
    add_test(NAME random_jobs COMMAND ${random_jobs} --kept --first 8 --jobs 4
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    lockstep_long(random_jobs ${random_jobs} --seed new --minutes 55 --jobs 4 --pairs)
    add_test(NAME random_files
             COMMAND ${Python3_EXECUTABLE} tests/random_files.py
                     ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    lockstep_long(random_files ${Python3_EXECUTABLE} tests/random_files.py
                  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep --seed new --count 1000)
    add_test(NAME promises
             COMMAND ${Python3_EXECUTABLE} tests/random_jobs/promise.py --check
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    add_test(NAME mutants
             COMMAND ${Python3_EXECUTABLE} tests/random_jobs/mutants.py --check
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set(long stranger study_oracle study_mutants figures random_jobs random_files)
  endif()
  foreach(test ${tests})
    add_test(NAME ${test} COMMAND ${Python3_EXECUTABLE} tests/${test}.py
                                  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endforeach()
  set_tests_properties(${tests} ${long} PROPERTIES TIMEOUT 1800 # on a busy machine
                                                   LABELS jobs SKIP_RETURN_CODE 77)
endif()
