// carriers.h - our own carriers of group.h's verbs: a ring, over three things.

#ifndef HOROVOD_RING_CARRIERS_H
#define HOROVOD_RING_CARRIERS_H

#include "group/group.h"

// Over TCP; anywhere.
extern const struct group_ops ring_tcp;

#endif
