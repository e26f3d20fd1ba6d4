lockstep_library(sync
  FILES sync/sync.c sync/bucket.c sync/derive.c sync/fault.c
        sync/slots.c sync/copies.c sync/local.c sync/members.c
        sync/own_norm.c sync/replicas.c sync/student.c
  LINKS group rule optim device cluster config base ${CMAKE_DL_LIBS})
lockstep_test(sync LINKS sync)
lockstep_library(law
  FILES sync/law.c sync/law_mesh.c sync/link.c
  LINKS group rule base PkgConfig::CJSON m)
