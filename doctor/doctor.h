// doctor.h - what the Python package's part of `lockstep doctor` asks
// (lockstep/tell.c).
//
//     ["hosts", FILE]   the hosts of hosts=FILE: name, slots, address or why
//                       there is none, and the command that starts `lockstep
//                       probe` there; why an address cannot be reached from
//                       other hosts; and this Lockstep's version
//     ["cudnn"]         the version of the cuDNN that a training would load

#pragma once

struct cJSON;

// Answers such a question into the object *out. 0, or -1 after fail().
int doctor_hosts(const struct cJSON *question, struct cJSON *out);
int doctor_cudnn(const struct cJSON *question, struct cJSON *out);
