lockstep_backend(gossip
  FILES gossip/gossip.c
  LINKS horovod_ring sync group cluster base)
