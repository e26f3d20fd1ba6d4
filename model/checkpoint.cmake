# The layout and the file formats are a library without the computation, so that
# fuzzers can build them alone.
include(tests/fuzz/fuzz.cmake)

lockstep_library(checkpoint
  FILES model/checkpoint.c model/checkpoint_write.c model/layout.c model/llmc.c
        model/part.c model/safetensors.c
  LINKS base PkgConfig::CJSON OpenMP::OpenMP_C m)
lockstep_test(layout LINKS checkpoint)
foreach(test checkpoint checkpoint_bad)
  lockstep_test(${test} LINKS checkpoint)
  if(TARGET test_${test})
    target_sources(test_${test} PRIVATE tests/checkpoint_files.c)
  endif()
endforeach()
lockstep_fuzz(safetensors LINKS checkpoint)
lockstep_fuzz(llmc LINKS checkpoint)
