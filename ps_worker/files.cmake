lockstep_backend(ps_worker
  FILES ps_worker/worker.c ps_worker/client.c ps_worker/client_send.c
        ps_worker/task.c
  LINKS squeezed squeeze sync ps_wire cluster_zmq cluster_mpi telemetry device optim config base
        Threads::Threads m)
lockstep_test(ps_client LINKS ps_worker)
