# Experiments: the commands run, report, compare and watch.
lockstep_library(study
  FILES lockstep/answer.c lockstep/baseline.c lockstep/compare.c
        lockstep/csv.c lockstep/loss_curve.c lockstep/experiment.c lockstep/fair.c
        lockstep/figure.c lockstep/finish.c lockstep/html.c lockstep/join.c
        lockstep/live.c lockstep/measure.c lockstep/report.c
        lockstep/result.c lockstep/result_law.c lockstep/result_setting.c
        lockstep/result_stages.c
        lockstep/run.c lockstep/samples.c lockstep/say.c lockstep/study.c
        lockstep/sweep.c lockstep/table.c lockstep/table_text.c
        lockstep/watch.c
  LINKS memory supervise telemetry law config share base PkgConfig::CJSON
        PkgConfig::INIH m)
lockstep_test(experiments LINKS study)
if(TARGET test_experiments)
  target_compile_definitions(test_experiments PRIVATE
                             LOCKSTEP_SOURCE="${CMAKE_SOURCE_DIR}")
endif()
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME study COMMAND ${Python3_EXECUTABLE} tests/study.py
                              ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME hostile COMMAND ${Python3_EXECUTABLE} tests/hostile.py
                                ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME answers COMMAND ${Python3_EXECUTABLE} tests/answers.py
                                ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME doctor_hosts
           COMMAND ${Python3_EXECUTABLE} tests/doctor_hosts.py
                   ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME figures COMMAND ${Python3_EXECUTABLE} tests/draw.py plots
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(study doctor_hosts hostile answers figures PROPERTIES TIMEOUT 300
                                                LABELS jobs
                                                SKIP_RETURN_CODE 77)
endif()
