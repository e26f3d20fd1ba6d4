# cmake --install build/release --prefix DIR: base/share.h and docs/install.md
# describe what DIR gets. Sanitizer builds are not installed.
if(LOCKSTEP_SANITIZE)
  return()
endif()
include(GNUInstallDirs)
include(package/library.cmake)
include(package/pages.cmake)

set(share ${CMAKE_INSTALL_DATADIR}/lockstep)
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)

# The programs, and the helper programs that lockstep starts.
install(TARGETS lockstep trainer ps_server)
foreach(helper collect_perf explain_way layer_perf link_perf pair_perf
               simulate_job span_perf squeeze_perf sync_perf)
  if(TARGET ${helper})
    install(TARGETS ${helper} DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/lockstep)
  endif()
endforeach()

# The library, its two public headers, group/group.h and sync/sync.h, and the
# headers that these need.
install(TARGETS liblockstep)
install(FILES ${static_library} DESTINATION ${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" up "${up}")
configure_file(package/lockstep.pc.in ${CMAKE_BINARY_DIR}/lockstep.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/lockstep.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(header
    core/base/base.h core/base/half.h core/cluster/cluster.h core/cluster/rendezvous.h
    core/config/backends.h core/config/config.h
    core/config/compressors.def core/config/mesh.h core/config/settings.h
    core/device/device.h
    core/group/group.h core/message/message.h core/optim/optim.h
    core/optim/rule.h horovod_ring/carriers.h horovod_ring/plan.h
    sync/bucket.h sync/derive.h sync/local.h sync/replicas.h sync/sync.h)
  get_filename_component(folder ${header} DIRECTORY)
  string(REGEX REPLACE "^core/" "" folder ${folder})
  install(FILES ${header}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep/${folder})
endforeach()

# Figures, experiments and labs, as they are in the source tree. The labs'
# solutions, right and wrong, are not installed.
install(DIRECTORY plots DESTINATION ${share})
install(DIRECTORY experiments DESTINATION ${share})
# The package that runs experiments and reads runs (launch/study.c finds it).
install(DIRECTORY study/lockstep DESTINATION lib/python3/dist-packages
        PATTERN "__pycache__" EXCLUDE)
install(FILES core/config/backends.def DESTINATION ${share}/core/config)
install(FILES tests/oracle/gpt2_torch_ddp.py tests/oracle/gpt2_torch_gpu.py
              tests/oracle/gpt2_torch_speed.py
              tests/oracle/squeeze_torch_speed.py
        DESTINATION ${share}/tests/oracle)
install(DIRECTORY labs DESTINATION ${share} USE_SOURCE_PERMISSIONS
        PATTERN "__pycache__" EXCLUDE PATTERN "labs/out" EXCLUDE
        PATTERN "files.cmake" EXCLUDE PATTERN "reference.c" EXCLUDE
        PATTERN "second.c" EXCLUDE PATTERN "mutants.txt" EXCLUDE
        PATTERN "unseen.txt" EXCLUDE PATTERN "hidden.txt" EXCLUDE)
install(DIRECTORY core/base core/virtual DESTINATION ${share}/core
        FILES_MATCHING PATTERN "*.h" PATTERN "error.c"
        PATTERN "core/virtual/*.c" PATTERN "page.html")
install(PROGRAMS demo DESTINATION ${share})
install(FILES LICENSE DESTINATION ${share})
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

include(package/deb.cmake)

find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  foreach(what tree deb)
    add_test(NAME install_${what}
             COMMAND ${Python3_EXECUTABLE} tests/install.py ${CMAKE_BINARY_DIR}
                     ${what}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(install_${what} PROPERTIES TIMEOUT 300 LABELS jobs
      SKIP_RETURN_CODE 77
      ENVIRONMENT "CC=${CMAKE_C_COMPILER};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endif()

# A long test on Debian 13, which has oneDNN 3 and Open MPI 5.
include(tests/long.cmake)
lockstep_long(debian_13 bash tests/debian_tree.sh trixie
              ${CMAKE_BINARY_DIR}/debian)
# And on 64-bit ARM, which qemu emulates.
lockstep_long(arm64 bash tests/arm64_tree.sh ${CMAKE_BINARY_DIR}/debian/arm64
              ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_property(TEST arm64_long PROPERTY TIMEOUT 10800)
