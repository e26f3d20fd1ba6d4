lockstep_library(cluster
  FILES core/cluster/cluster.c core/cluster/local.c core/cluster/mail.c
  LINKS base)
# The transports are libraries of their own: link only what you use.
foreach(transport mpi zmq)
  if(EXISTS ${CMAKE_SOURCE_DIR}/core/cluster/${transport}.cmake)
    include(core/cluster/${transport}.cmake)
  endif()
endforeach()
include(core/cluster/net.cmake)
