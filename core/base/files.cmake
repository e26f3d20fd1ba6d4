lockstep_library(base
  FILES core/base/clock.c core/base/error.c core/base/file.c
        core/base/hash.c core/base/mem.c
  LINKS PkgConfig::XXHASH m)
lockstep_test(base LINKS base)
