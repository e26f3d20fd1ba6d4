lockstep_library(ps_wire
  FILES ps_wire/wire.c ps_wire/shard.c ps_wire/job.c ps_wire/buffer.c
  LINKS config base optim Threads::Threads m)
lockstep_test(ps_wire LINKS ps_wire)
if(COMMAND lockstep_fuzz)
  lockstep_fuzz(ps_wire LINKS ps_wire)
endif()
