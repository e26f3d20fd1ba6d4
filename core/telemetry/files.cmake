# NVTX is a header of the CUDA toolkit.
if(CUDA_BUILT)
  find_path(NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
endif()
lockstep_library(telemetry
  FILES core/telemetry/activity.c core/telemetry/align.c core/telemetry/cell.c
        core/telemetry/manifest.c core/telemetry/merge.c
        core/telemetry/nvml.c core/telemetry/trace_parts.c core/telemetry/sampler.c
        core/telemetry/shares.c core/telemetry/span.c core/telemetry/steps.c
        core/telemetry/tfevents.c core/telemetry/times.c core/telemetry/trace.c
  LINKS base PkgConfig::CJSON Threads::Threads ${CMAKE_DL_LIBS} m)
if(CUDA_BUILT AND NVTX_INCLUDE)
  target_compile_definitions(telemetry PRIVATE LOCKSTEP_NVTX)
  target_include_directories(telemetry SYSTEM PRIVATE ${NVTX_INCLUDE})
  lockstep_test(nvtx LINKS telemetry)
endif()
if(TARGET test_nvtx)
  add_library(fake_nvtx SHARED tests/fake_nvtx.c)
  target_include_directories(fake_nvtx PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(fake_nvtx SYSTEM PRIVATE ${NVTX_INCLUDE})
  target_link_libraries(test_nvtx PRIVATE fake_nvtx)
  set_property(TEST nvtx PROPERTY ENVIRONMENT
               NVTX_INJECTION64_PATH=$<TARGET_FILE:fake_nvtx>)
endif()
lockstep_test(telemetry LINKS telemetry)
lockstep_test(manifest LINKS telemetry)
lockstep_test(spans LINKS telemetry)
lockstep_test(trace LINKS telemetry)
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME readers COMMAND ${Python3_EXECUTABLE} tests/readers.py
                                ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/trainer
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(readers PROPERTIES TIMEOUT 300 LABELS jobs)
endif()
lockstep_test(activity LINKS telemetry)
if(TARGET test_activity)
  add_library(fake_cupti SHARED tests/fake_cupti.c)
  set_target_properties(fake_cupti PROPERTIES
    OUTPUT_NAME cupti SOVERSION 13
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake)
  add_dependencies(test_activity fake_cupti)
  set_property(TEST activity PROPERTY ENVIRONMENT
               LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/fake)
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
