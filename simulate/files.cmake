# SimGrid is optional: without it `lockstep simulate` says what to install. A
# simulated program is a shared object that SimGrid's own program loads. It would
# crash if it were executed by itself, so nobody may. A sanitizer cannot be loaded
# in this way, and SimGrid's mpi.h is not Open MPI's.
find_path(SIMGRID_INCLUDE smpi/mpi.h)
find_library(SIMGRID_LIBRARY simgrid)
find_program(SMPIRUN smpirun)
mark_as_advanced(SIMGRID_INCLUDE SIMGRID_LIBRARY SMPIRUN)
if(SIMGRID_INCLUDE AND SIMGRID_LIBRARY AND SMPIRUN AND NOT LOCKSTEP_SANITIZE)
  set(vector_files ${device_files})
  list(FILTER vector_files INCLUDE REGEX "/vector")
  add_library(simulate_job MODULE
    simulate/main.c simulate/gradient.c simulate/mesh_step.c simulate/ring.c
    simulate/textbook.c textbook/schedule.c
    simulate/allreduce.c simulate/servers.c simulate/carry_simulated.c
    simulate/compressed.c simulate/group_simulated.c simulate/no_numbers.c
    simulate/owner.c dataparallel/dataparallel.c
    horovod_ring/flow.c horovod_ring/plan.c horovod_ring/ring_wire.c
    horovod_ring/streams.c horovod_ring/ring_flow.c horovod_ring/pairs.c
    allreduce/operands.c core/group/group.c core/group/chunk.c
    ps_wire/shard.c ps_wire/wire.c ps_wire/buffer.c ps_wire/job.c
    ps_worker/client.c ps_worker/client_send.c ps_worker/task.c ps_round/ps_round.c
    ps_server/server.c ps_server/server_send.c ps_server/peers.c
    ps_server/bsp.c ps_server/bsp_members.c ps_server/async.c
    ps_server/gather.c ps_server/vectors.c ps_server/store.c
    ps_server/answers.c squeeze/squeeze.c squeeze/topk.c squeeze/int8.c
    squeeze/sign.c squeeze/power.c squeeze/cosines.c squeeze/residuals.c
    squeeze/squeezed.c squeeze/travel.c squeeze/messages.c squeeze/sums.c
    squeeze/units.c squeeze/scatter.c zero/zero.c zero/blocks.c zero/shards.c
    train/shape_exchange.c model/layout.c model/part.c sync/members.c sync/slots.c sync/law.c
    core/device/device.c core/device/cpu.c core/device/shared.c core/base/file.c
    core/optim/offload.c
    core/message/message.c core/message/message_mpi.c core/cluster/rendezvous.c
    sync/bucket.c
    core/base/clock.c core/base/error.c core/base/hash.c core/base/mem.c
    core/config/backends.c core/config/config.c
    core/config/keys.c core/config/key_parts.c core/config/key.c core/config/mesh.c
    core/config/suggest.c core/config/terms.c core/pipeline/timetable.c
    core/config/value.c
    core/telemetry/span.c core/telemetry/align.c core/optim/optim.c core/optim/segment.c
    core/optim/rule.c core/optim/rule_cpu.c
    ${vector_files})
  target_include_directories(simulate_job PRIVATE
    ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/core ${SIMGRID_INCLUDE}/smpi)
  target_compile_options(simulate_job PRIVATE ${optim_flags})
  target_link_libraries(simulate_job PRIVATE ${SIMGRID_LIBRARY}
                                             PkgConfig::XXHASH m)
  # group_simulated.c, carry_simulated.c and no_numbers.c replace these functions,
  # and say why.
  foreach(replaced wire_open wire_landed vector_cast vector_add squeeze_find travel_open
          power_orthonormal power_right power_left power_product demo_encode
          demo_signs demo_check squeeze_put_union squeeze_add_union
          segment_squares segment_update)
    target_link_options(simulate_job PRIVATE -Wl,--wrap=${replaced})
  endforeach()
  target_link_options(simulate_job PRIVATE -Wl,-z,defs)
  set_target_properties(simulate_job PROPERTIES PREFIX "" SUFFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  add_custom_command(TARGET simulate_job POST_BUILD
                     COMMAND chmod -x $<TARGET_FILE:simulate_job>)
endif()
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME simulate COMMAND ${Python3_EXECUTABLE} tests/test_simulate.py
                                 ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(simulate PROPERTIES TIMEOUT 900 LABELS jobs
                                           SKIP_RETURN_CODE 77)
endif()
