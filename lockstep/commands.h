// commands.h - the commands of `lockstep`.

#pragma once

#include "launch/command.h"

extern const struct command command_train, command_sample, command_doctor,
    command_keys, command_predict, command_simulate, command_pin, command_run,
    command_report, command_compare, command_watch, command_bench,
    command_enter, command_watchdog, command_fit, command_explain, command_demo,
    command_probe, command_plan, command_prepare, command_verify, command_man,
    command_completion, command_tell;
