# The commit is asked for at each build: runs of two builds are never taken for one.
add_custom_target(revision
  COMMAND ${CMAKE_COMMAND} -D OUT=${CMAKE_BINARY_DIR}/revision/base/revision.h
          -P ${CMAKE_SOURCE_DIR}/core/base/revision.cmake
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
  BYPRODUCTS ${CMAKE_BINARY_DIR}/revision/base/revision.h
  COMMENT "Looking up the commit")
lockstep_library(version FILES core/base/version.c)
add_dependencies(version revision)
target_include_directories(version PRIVATE ${CMAKE_BINARY_DIR}/revision)
target_compile_definitions(version PRIVATE LOCKSTEP_VERSION="${PROJECT_VERSION}")

lockstep_library(base
  FILES core/base/beat.c core/base/clock.c core/base/error.c core/base/file.c
        core/base/hash.c core/base/median.c core/base/mem.c core/base/process.c
        core/base/processor.c core/base/std_streams.c core/base/zigzag.c
  LINKS PkgConfig::XXHASH m)
lockstep_library(share FILES core/base/share.c LINKS base)
target_compile_definitions(share PRIVATE LOCKSTEP_SOURCE="${CMAKE_SOURCE_DIR}")
lockstep_library(secret FILES core/base/secret.c
                 LINKS base PkgConfig::SODIUM)
lockstep_test(base LINKS base)
lockstep_test(process LINKS base)
