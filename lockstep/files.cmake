include(lockstep/study.cmake)

add_executable(lockstep
  lockstep/main.c lockstep/bench.c lockstep/demo.c
  lockstep/keypairs.c lockstep/plan_lines.c
  lockstep/prepare.c lockstep/sample.c lockstep/tell.c)
target_link_libraries(lockstep PRIVATE
  about predict doctor launch study supervise whole pipeline model data message_zmq
  cluster config version base ${CMAKE_DL_LIBS})
lockstep_says(run_nothing 1 "nope.ini: No such file .*; try: "
              $<TARGET_FILE:lockstep> run nope.ini out=${CMAKE_BINARY_DIR}/nope)
lockstep_says(shards_staging 1 "shard=3 works on vectors in host memory; try: "
              $<TARGET_FILE:lockstep> train sync=zero shard=3 workers=2
              staging=always model=nano layers=1 context=16 steps=1 eval=0
              data=${CMAKE_SOURCE_DIR}/README.md)
lockstep_test(again LINKS base PkgConfig::CJSON LABELS jobs)
if(TARGET test_again)
  target_sources(test_again PRIVATE tests/job.c)
  target_compile_definitions(test_again PRIVATE
                             LOCKSTEP_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
                             LOCKSTEP_OLD_RUN="${CMAKE_SOURCE_DIR}/tests/old_run")
  add_dependencies(test_again lockstep trainer ps_server)
endif()
foreach(test lockstep refusals)
  lockstep_test(${test} LINKS base PkgConfig::CJSON LABELS jobs)
  if(TARGET test_${test})
    target_sources(test_${test} PRIVATE tests/job.c)
    target_compile_definitions(test_${test} PRIVATE
                               LOCKSTEP_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
                               LOCKSTEP_VERSION="${PROJECT_VERSION}")
    add_dependencies(test_${test} lockstep trainer ps_server sync_perf)
  endif()
endforeach()
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  foreach(test plan names net watch)
    add_test(NAME ${test} COMMAND ${Python3_EXECUTABLE} tests/${test}.py
                                  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${test} PROPERTIES TIMEOUT 300 LABELS jobs)
  endforeach()
endif()
