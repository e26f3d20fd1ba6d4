# lockstep_fuzz(NAME LINKS...): tests/fuzz/fuzz_NAME.c, a libFuzzer entry point
# (LLVMFuzzerTestOneInput) over the libraries named.
#
# If clang with libFuzzer is installed, clang compiles the entry point and the sources of
# our libraries again, with coverage and sanitizers, whichever compiler builds the rest.
# CTest then fuzzes for some seconds, from the corpus in tests/fuzz/corpus/NAME/. Without
# libFuzzer, or if the whole build has sanitizers, the corpus is replayed once through the
# libraries of the build. A library must be defined before the fuzzers that link it.
include_guard(GLOBAL)

include(tests/long.cmake)
set(LOCKSTEP_FUZZ_SECONDS 4 CACHE STRING "How long CTest runs each fuzzer")
find_program(LOCKSTEP_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16
                                  clang-15 clang-14)
mark_as_advanced(LOCKSTEP_CLANG)
set(fuzz_flags -std=gnu11 -g -O1 -D_GNU_SOURCE -fno-omit-frame-pointer
               -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)

if(CMAKE_CROSSCOMPILING) # clang would compile for this machine
  set(LOCKSTEP_LIBFUZZER OFF)
endif()
if(LOCKSTEP_CLANG AND NOT DEFINED LOCKSTEP_LIBFUZZER)
  set(fuzz_probe ${CMAKE_BINARY_DIR}/CMakeFiles/fuzz_probe)
  file(WRITE ${fuzz_probe}.c "#include <stddef.h>\n#include <stdint.h>\n"
       "int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)\n"
       "{ return d == NULL && n; }\n")
  execute_process(COMMAND ${LOCKSTEP_CLANG} ${fuzz_flags} ${fuzz_probe}.c
                          -o ${fuzz_probe}
                  RESULT_VARIABLE fuzz_status OUTPUT_QUIET ERROR_QUIET)
  if(fuzz_status EQUAL 0)
    set(fuzz_works ON)
  else()
    set(fuzz_works OFF)
    message(STATUS "libFuzzer does not link: fuzzers replay their corpus")
  endif()
  set(LOCKSTEP_LIBFUZZER ${fuzz_works} CACHE BOOL "clang can build fuzzers")
endif()

# Sorts `libs` and the libraries below them: our sources, which clang compiles again, and
# all other libraries, which are linked unchanged.
function(fuzz_collect libs)
  foreach(lib ${libs})
    list(FIND fuzz_seen ${lib} seen)
    if(NOT seen EQUAL -1)
      continue()
    endif()
    list(APPEND fuzz_seen ${lib})
    set(type none)
    if(TARGET ${lib})
      get_target_property(type ${lib} TYPE)
    endif()
    if(type STREQUAL STATIC_LIBRARY)
      get_target_property(files ${lib} SOURCES)
      list(APPEND fuzz_sources ${files})
      get_target_property(below ${lib} LINK_LIBRARIES)
      if(below)
        fuzz_collect("${below}")
      endif()
    else()
      list(APPEND fuzz_others ${lib})
    endif()
  endforeach()
  set(fuzz_seen ${fuzz_seen} PARENT_SCOPE)
  set(fuzz_sources ${fuzz_sources} PARENT_SCOPE)
  set(fuzz_others ${fuzz_others} PARENT_SCOPE)
endfunction()

# Sets `out` to the object that clang makes of a source, once for all fuzzers.
function(fuzz_object source includes out)
  set(object ${CMAKE_BINARY_DIR}/fuzz/objects/${source}.o)
  set(${out} ${object} PARENT_SCOPE)
  get_property(made GLOBAL PROPERTY fuzz_objects)
  if(object IN_LIST made)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY fuzz_objects ${object})
  get_filename_component(folder ${object} DIRECTORY)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${LOCKSTEP_CLANG} ${fuzz_flags}
            ${includes} -MD -MF ${object}.d -c ${CMAKE_SOURCE_DIR}/${source}
            -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d
    COMMENT "Building ${source} for fuzzers" VERBATIM)
endfunction()

# Builds bin/fuzz_NAME with clang.
function(fuzz_build name libs)
  set(fuzz_seen "")
  set(fuzz_sources "")
  set(fuzz_others "")
  fuzz_collect("${libs}")
  set(includes -I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/core)
  set(links "")
  foreach(lib ${fuzz_others})
    if(TARGET ${lib})
      get_target_property(dirs ${lib} INTERFACE_INCLUDE_DIRECTORIES)
      if(dirs)
        list(TRANSFORM dirs PREPEND -I)
        list(APPEND includes ${dirs})
      endif()
      get_target_property(below ${lib} INTERFACE_LINK_LIBRARIES)
      if(below)
        list(APPEND links ${below})
      endif()
    else()
      list(APPEND links -l${lib})
    endif()
  endforeach()
  set(objects "")
  foreach(source tests/fuzz/fuzz_${name}.c ${fuzz_sources})
    fuzz_object(${source} "${includes}" object)
    list(APPEND objects ${object})
  endforeach()
  set(program ${CMAKE_BINARY_DIR}/bin/fuzz_${name})
  add_custom_command(
    OUTPUT ${program}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/bin
    COMMAND ${LOCKSTEP_CLANG} ${fuzz_flags} ${objects} ${links} -lpthread -lm
            -o ${program}
    DEPENDS ${objects}
    COMMENT "Linking fuzzer ${name} with ${LOCKSTEP_CLANG}" VERBATIM)
  add_custom_target(fuzz_${name} ALL DEPENDS ${program})
endfunction()

function(lockstep_fuzz name)
  cmake_parse_arguments(A "" "" "LINKS" ${ARGN})
  set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(LOCKSTEP_LIBFUZZER AND NOT LOCKSTEP_SANITIZE)
    fuzz_build(${name} "${A_LINKS}")
    # New inputs go to the first folder. The corpus does not change.
    set(found ${CMAKE_BINARY_DIR}/fuzz/${name})
    file(MAKE_DIRECTORY ${found})
    set(words -timeout=20 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1
              -artifact_prefix=${found}/ ${found} ${corpus})
    add_test(NAME fuzz_${name}
             COMMAND ${CMAKE_BINARY_DIR}/bin/fuzz_${name}
                     -max_total_time=${LOCKSTEP_FUZZ_SECONDS} ${words})
    lockstep_long(fuzz_${name} ${CMAKE_BINARY_DIR}/bin/fuzz_${name}
                  -max_total_time=300 ${words})
  else()
    add_executable(fuzz_${name} tests/fuzz/fuzz_${name}.c tests/fuzz/replay.c)
    target_link_libraries(fuzz_${name} PRIVATE ${A_LINKS})
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${corpus})
  endif()
  set_tests_properties(fuzz_${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  add_dependencies(lockstep_tests fuzz_${name})
endfunction()
