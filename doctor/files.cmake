lockstep_library(doctor
  FILES doctor/doctor.c doctor/doctor_tell.c doctor/probe.c
  LINKS study supervise model secret version config base dnnl PkgConfig::ZMQ
        PkgConfig::CJSON ${CMAKE_DL_LIBS})
