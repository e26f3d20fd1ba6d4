# The supervisor is a library of its own, so that its tests can run it with
# programs that fail in all kinds of ways.
lockstep_library(supervise
  FILES launch/argv.c launch/child.c launch/cores.c launch/hosts.c
        launch/launch.c launch/launch_mpi.c launch/mpirun.c launch/openmpi.c
        launch/progress.c launch/elastic.c launch/scratch.c launch/supervise.c
  LINKS netns config secret share base PkgConfig::HWLOC)

set_source_files_properties(launch/openmpi.c PROPERTIES
                            COMPILE_DEFINITIONS OPENMPI=openmpi_${OPENMPI_MAJOR})
# What the commands train, pin, enter and watchdog do.
lockstep_library(launch
  FILES launch/enter.c launch/pin.c launch/settle.c launch/train.c
        launch/watchdog.c
  LINKS supervise memory whole telemetry cluster netns config base)
# The commands run, report, compare, verify and watch, which are the Python package
# study/lockstep.
lockstep_library(study
  FILES launch/study.c LINKS supervise config share base)
lockstep_test(mpirun LINKS supervise)
lockstep_test(supervise LINKS supervise)
lockstep_test(elastic LINKS supervise)
lockstep_test(progress LINKS supervise)
lockstep_test(start LINKS supervise)
