lockstep_library(virtual
  FILES core/virtual/baton.c core/virtual/calls.c core/virtual/line.c
        core/virtual/network.c core/virtual/timeline.c core/virtual/turns.c
        core/virtual/virtual.c
  LINKS base Threads::Threads m)
lockstep_test(virtual LINKS virtual)
lockstep_test(virtual_law LINKS virtual)
