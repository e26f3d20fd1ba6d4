# Experiments: run, tables, figures, report, compare.
lockstep_library(study
  FILES lockstep/compare.c lockstep/csv.c lockstep/experiment.c
        lockstep/figure.c lockstep/finish.c lockstep/html.c
        lockstep/report.c lockstep/result.c lockstep/run.c lockstep/study.c
        lockstep/table.c
  LINKS supervise telemetry law config base PkgConfig::CJSON PkgConfig::INIH m)
target_compile_definitions(study PRIVATE
                           LOCKSTEP_PLOTS="${CMAKE_SOURCE_DIR}/plots")
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME study COMMAND ${Python3_EXECUTABLE} tests/study.py
                              ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME hostile COMMAND ${Python3_EXECUTABLE} tests/hostile.py
                                ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME figures COMMAND ${Python3_EXECUTABLE} tests/draw.py plots
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(study hostile figures PROPERTIES TIMEOUT 300 LABELS jobs
                                                SKIP_RETURN_CODE 77)
endif()
