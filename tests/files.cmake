find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  # What runs no program of the build, or builds its own, is not done again under a
  # sanitizer.
  if(NOT LOCKSTEP_SANITIZE)
    foreach(rule floors circles style backends pages results)
      add_test(NAME ${rule}
               COMMAND ${Python3_EXECUTABLE} tests/${rule}.py ${CMAKE_SOURCE_DIR}
               WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
      add_test(NAME ${rule}_finds_mistakes
               COMMAND ${Python3_EXECUTABLE} tests/${rule}.py --self-test
               WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    endforeach()
    include(tests/long.cmake)
    lockstep_long(add_backend ${Python3_EXECUTABLE} tests/add_backend.py
                              ${CMAKE_SOURCE_DIR})
    lockstep_long(slurm ${Python3_EXECUTABLE} tests/slurm.py
                  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR}
                  ${CMAKE_BINARY_DIR}/slurm) # where it unpacks Slurm
    lockstep_long(musl ${Python3_EXECUTABLE} tests/musl.py ${CMAKE_BINARY_DIR}
                  ${CMAKE_BINARY_DIR}/musl)
    lockstep_long(ssh_hosts ${Python3_EXECUTABLE} tests/ssh_hosts.py
                  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_BINARY_DIR}/ssh)
    add_test(NAME ssh_hosts
             COMMAND ${Python3_EXECUTABLE} tests/ssh_hosts.py
                     ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_BINARY_DIR}/ssh
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(ssh_hosts PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77
                                              LABELS jobs)
    add_test(NAME unauthenticated
             COMMAND ${Python3_EXECUTABLE} tests/unauthenticated.py
                     ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(unauthenticated PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
    lockstep_long(unauthenticated ${Python3_EXECUTABLE} tests/unauthenticated.py
                  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} 10000)
    set(hour ${Python3_EXECUTABLE} tests/first_hour.py ${CMAKE_SOURCE_DIR}
             ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
    add_test(NAME first_hour COMMAND ${hour}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(first_hour PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77
                                               LABELS jobs)
    lockstep_long(first_hour ${hour})
  endif()
endif()
if(NOT LOCKSTEP_SANITIZE)
  add_test(NAME check_gpu COMMAND bash ${CMAKE_SOURCE_DIR}/tests/check_gpu.sh)
  set_tests_properties(check_gpu PROPERTIES TIMEOUT 300)
  add_test(NAME scripts COMMAND bash ${CMAKE_SOURCE_DIR}/tests/scripts.sh)
endif()
include(tests/oracle/oracle.cmake)
include(tests/emulated_cuda/files.cmake)

# The tests of threaded parts. ./check also builds them with ThreadSanitizer
# (lockstep_threads) and runs them again. tsan.supp suppresses what ThreadSanitizer
# reports of libraries.
add_custom_target(lockstep_threads)
foreach(test data flow group group_faults ring ring_shared rendezvous ps_policy
             snapshot spans trace virtual)
  if(TEST ${test})
    if(TARGET test_${test})
      add_dependencies(lockstep_threads test_${test})
    endif()
    set_property(TEST ${test} APPEND PROPERTY LABELS threads)
    set_property(TEST ${test} PROPERTY ENVIRONMENT OMP_NUM_THREADS=1
                 "TSAN_OPTIONS=suppressions='${CMAKE_SOURCE_DIR}/tests/tsan.supp'")
    set_property(TEST ${test} PROPERTY TIMEOUT 900)
  endif()
endforeach()
if(TEST nccl) # every case of every backend, with threads for queues
  set_property(TEST nccl PROPERTY TIMEOUT 900)
endif()

# The longest tests begin first, so that no test runs alone at the end.
set(longest memory lab_export stranger jobs nccl simulate random_jobs study_oracle
            train forecasts group group_faults shard_jobs squeeze_jobs
            check_gpu_emulated cuda_train_emulated_backward cuda_train_emulated
            cuda_attention_emulated_700 squeezed piece_jobs zero_shards
            squeeze_reruns elastic_jobs launched lockstep ring_shared nccl_carriers
            ring allreduce_2 allreduce_3 allreduce_4 ps_dps ps ps_sps_update
            ps_dps_worker slice_jobs stage_jobs save supervise outer_jobs
            mistake_jobs)
list(LENGTH longest cost)
foreach(test IN LISTS longest)
  if(TEST ${test})
    set_property(TEST ${test} PROPERTY COST ${cost})
  endif()
  math(EXPR cost "${cost} - 1")
endforeach()
