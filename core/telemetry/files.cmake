lockstep_library(telemetry
  FILES core/telemetry/align.c core/telemetry/manifest.c core/telemetry/merge.c
        core/telemetry/nvml.c core/telemetry/parts.c core/telemetry/sampler.c
        core/telemetry/shares.c core/telemetry/span.c core/telemetry/steps.c
        core/telemetry/tfevents.c core/telemetry/times.c core/telemetry/trace.c
  LINKS base PkgConfig::CJSON Threads::Threads ${CMAKE_DL_LIBS} m)
lockstep_test(telemetry LINKS telemetry)
lockstep_test(spans LINKS telemetry)
lockstep_test(trace LINKS telemetry)
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME readers COMMAND ${Python3_EXECUTABLE} tests/readers.py
                                ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/trainer
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(readers PROPERTIES TIMEOUT 300 LABELS jobs)
endif()
lockstep_test(nvml LINKS telemetry)
if(TARGET test_nvml)
  add_library(fake_nvml SHARED tests/fake_nvml.c)
  set_target_properties(fake_nvml PROPERTIES
    OUTPUT_NAME nvidia-ml SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake)
  add_dependencies(test_nvml fake_nvml)
  set_property(TEST nvml PROPERTY ENVIRONMENT
               LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/fake)
endif()
