# All strategies and carriers, from the folders of the backends.
get_property(backends GLOBAL PROPERTY lockstep_backends)
lockstep_library(backends
  FILES train/ways.c
  LINKS ${backends} sync cluster_mpi cluster_zmq cluster config base)
if(NCCL_BUILT)
  target_compile_definitions(backends PRIVATE LOCKSTEP_NCCL)
endif()

lockstep_library(memory
  FILES train/memory_plan.c train/shape.c train/shape_exchange.c
  LINKS model squeezed squeeze sync ps_wire pipeline optim device config base)

# What run.json says to the readers of a run, and `lockstep plan` before it.
lockstep_library(about
  FILES train/about.c train/run_law.c
  LINKS memory law squeezed sync model data pipeline telemetry group config base m)

lockstep_library(snapshot FILES train/snapshot.c LINKS base)
lockstep_library(whole FILES train/folder.c train/whole.c LINKS base PkgConfig::CJSON)

lockstep_library(train
  FILES train/check.c train/compute.c train/exchange.c train/lend.c train/loop.c
        train/observe.c train/parts.c train/place.c train/progress.c
        train/record.c train/save.c train/sequences.c
        train/setup.c train/slices.c
        train/stages.c train/stages_plan.c train/stage_buffers.c
        train/run_state.c train/summary.c
  LINKS memory about snapshot whole backends operands sync law model pipeline data telemetry optim
        cluster_mpi cluster_zmq
        device cluster config version base PkgConfig::CJSON PkgConfig::ZMQ MPI::MPI_C
        dnnl m)

add_executable(trainer train/main.c)
target_link_libraries(trainer PRIVATE train)

include(tests/long.cmake)
lockstep_test(folder LINKS whole)
lockstep_test(snapshot LINKS snapshot)
foreach(test train jobs shard_jobs stage_jobs slice_jobs piece_jobs worlds
             owner_jobs mistake_jobs offload_jobs
             elastic_jobs outer_jobs squeeze_jobs
             restart rewind save launched memory)
  lockstep_test(${test} LINKS cluster base PkgConfig::CJSON LABELS jobs)
  if(TARGET test_${test})
    target_sources(test_${test} PRIVATE tests/job.c)
    target_compile_definitions(test_${test} PRIVATE
                               LOCKSTEP_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
                               LOCKSTEP_SOURCE="${CMAKE_SOURCE_DIR}")
    add_dependencies(test_${test} trainer)
    set_tests_properties(${test} PROPERTIES TIMEOUT 900)
    if(NOT test MATCHES "memory|save")
      lockstep_long(${test} $<TARGET_FILE:test_${test}>)
    endif()
  endif()
endforeach()
if(TARGET test_save)
  add_library(slow_disk MODULE tests/slow_disk.c)
  foreach(test test_save test_elastic_jobs)
    add_dependencies(${test} slow_disk)
    target_compile_definitions(${test} PRIVATE
                               SLOW_DISK="$<TARGET_FILE:slow_disk>")
  endforeach()
endif()
if(TARGET test_launched)
  add_library(endless_finalize MODULE tests/endless_finalize.c)
  add_dependencies(test_launched endless_finalize)
  target_compile_definitions(test_launched PRIVATE
                             ENDLESS="$<TARGET_FILE:endless_finalize>")
endif()
