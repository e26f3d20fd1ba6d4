lockstep_library(train
  FILES train/backends.c train/folder.c train/loop.c train/observe.c
        train/place.c train/progress.c
        train/record.c train/setup.c train/state.c
  LINKS ps_worker allreduce horovod_ring sync model data telemetry optim
        cluster_mpi cluster_zmq device cluster config version base PkgConfig::CJSON PkgConfig::ZMQ MPI::MPI_C dnnl m)

if(NCCL_BUILT)
  target_compile_definitions(train PRIVATE LOCKSTEP_NCCL)
  target_link_libraries(train PUBLIC allreduce_nccl horovod_ring_nccl)
endif()

add_executable(trainer train/main.c)
target_link_libraries(trainer PRIVATE train)

include(tests/long.cmake)
lockstep_test(folder LINKS train)
foreach(test train jobs)
  lockstep_test(${test} LINKS base PkgConfig::CJSON LABELS jobs)
  if(TARGET test_${test})
    target_sources(test_${test} PRIVATE tests/job.c)
    target_compile_definitions(test_${test} PRIVATE
                               LOCKSTEP_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
    add_dependencies(test_${test} trainer)
    set_tests_properties(${test} PROPERTIES TIMEOUT 900)
    lockstep_long(${test} $<TARGET_FILE:test_${test}>)
  endif()
endforeach()
