lockstep_library(ps_round
  FILES ps_round/ps_round.c
  LINKS ps_server_lib ps_worker base)
