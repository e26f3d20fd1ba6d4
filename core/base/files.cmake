execute_process(COMMAND git describe --always --dirty
                WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                OUTPUT_VARIABLE LOCKSTEP_REVISION ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
lockstep_library(version FILES core/base/version.c)
target_compile_definitions(version PRIVATE
                           LOCKSTEP_VERSION="${PROJECT_VERSION}"
                           LOCKSTEP_REVISION="${LOCKSTEP_REVISION}")

lockstep_library(base
  FILES core/base/beat.c core/base/clock.c core/base/error.c core/base/file.c
        core/base/hash.c core/base/median.c core/base/mem.c core/base/process.c
  LINKS PkgConfig::XXHASH m)
lockstep_library(share FILES core/base/share.c LINKS base)
target_compile_definitions(share PRIVATE LOCKSTEP_SOURCE="${CMAKE_SOURCE_DIR}")
lockstep_library(secret FILES core/base/secret.c
                 LINKS base PkgConfig::SODIUM)
lockstep_test(base LINKS base)
lockstep_test(process LINKS base)
