# liblockstep gives other programs the functions of group/group.h and
# sync/sync.h, with what these need: a cluster without MPI, the CPU, our ring,
# and replicas. symbols.txt lists what it exports.
#
# The folders' own libraries are compiled for programs. The objects here are
# position-independent, and have no GPU code.
set(library_folders base secret cluster cluster_zmq message message_zmq config
                    device optim rule group horovod_ring sync)
set(library_needs "-lzmq -lsodium -lxxhash -linih -lcjson ${OpenMP_C_FLAGS} -lpthread -lm")

# library_objects(NAME FILES..): compiles FILES with the options of folder NAME.
function(library_objects name)
  add_library(library_${name} OBJECT ${ARGN})
  set_target_properties(library_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  foreach(what COMPILE_OPTIONS LINK_LIBRARIES)
    get_target_property(of_folder ${name} ${what})
    if(of_folder)
      set_property(TARGET library_${name} PROPERTY ${what} ${of_folder})
    endif()
  endforeach()
  target_include_directories(library_${name} PRIVATE
    ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/core)
endfunction()

set(library_objects $<TARGET_OBJECTS:library_telemetry>)
library_objects(telemetry core/telemetry/span.c)
foreach(folder ${library_folders})
  get_target_property(files ${folder} SOURCES)
  list(FILTER files EXCLUDE REGEX "cuda|[.]cu$")
  library_objects(${folder} ${files})
  list(APPEND library_objects $<TARGET_OBJECTS:library_${folder}>)
endforeach()

# The exported names, for the shared library (symbols.map) and the static one
# (symbols.plain).
set(symbols ${CMAKE_SOURCE_DIR}/package/symbols.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${symbols})
file(STRINGS ${symbols} names REGEX "^[a-z]")
list(JOIN names "\n" plain)
list(JOIN names ";\n    " listed)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/symbols.plain CONTENT "${plain}\n")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/symbols.map
     CONTENT "LOCKSTEP_@PROJECT_VERSION_MAJOR@ {\n  global:\n    ${listed};\n\
  local:\n    *;\n};\n" @ONLY)

add_library(liblockstep SHARED ${library_objects})
set_target_properties(liblockstep PROPERTIES
  OUTPUT_NAME lockstep VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
  LINK_DEPENDS ${CMAKE_BINARY_DIR}/symbols.map)
target_link_options(liblockstep PRIVATE
  -Wl,--version-script=${CMAKE_BINARY_DIR}/symbols.map -Wl,--no-undefined
  -Wl,--no-undefined-version)
target_link_libraries(liblockstep PRIVATE
  PkgConfig::ZMQ PkgConfig::SODIUM PkgConfig::XXHASH PkgConfig::INIH
  PkgConfig::CJSON OpenMP::OpenMP_C Threads::Threads m)

# The static library: the same objects linked into one, in which all other names
# are local.
set(static_library ${CMAKE_BINARY_DIR}/lib/liblockstep.a)
add_custom_command(OUTPUT ${static_library}
  COMMAND ${CMAKE_LINKER} -r -o lockstep_whole.o ${library_objects}
  COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=symbols.plain lockstep_whole.o
  COMMAND ${CMAKE_COMMAND} -E rm -f ${static_library}
  COMMAND ${CMAKE_AR} rcs ${static_library} lockstep_whole.o
  DEPENDS ${library_objects} ${symbols}
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR} COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(liblockstep_static ALL DEPENDS ${static_library})
