lockstep_library(config
  FILES core/config/backends.c core/config/batch.c core/config/check_mesh.c
        core/config/check_run.c core/config/check_squeeze.c core/config/config.c
        core/config/help.c core/config/ini.c core/config/json.c core/config/key.c
        core/config/key_parts.c core/config/keys.c core/config/mesh.c core/config/resume.c
        core/config/suggest.c core/config/terms.c core/config/value.c
  LINKS base PkgConfig::CJSON PkgConfig::INIH m)
lockstep_test(config LINKS config)
lockstep_test(config_files LINKS config)
lockstep_test(mesh LINKS config)
lockstep_test(suggest LINKS config)
if(TARGET test_suggest)
  target_compile_definitions(test_suggest PRIVATE LOCKSTEP_SOURCE="${CMAKE_SOURCE_DIR}")
endif()
if(COMMAND lockstep_fuzz)
  lockstep_fuzz(ini LINKS config)
endif()
