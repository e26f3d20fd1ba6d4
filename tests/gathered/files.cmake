lockstep_backend(gathered
  FILES gathered/gathered.c
  LINKS horovod_ring sync group cluster config base)
