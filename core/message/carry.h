// carry.h - the few calls of MPI that messages over MPI need.
//
// They are in a file of their own, so that a simulation (simulate/) can replace
// them: its calls block instead of polling, and its messages have no contents.

#pragma once

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A buffer for the data of a message that will arrive; NULL after fail().
// carry_free() frees it.
void *carry_buffer(size_t bytes);
void carry_free(void *buffer); // takes NULL

// Begins to send data to a rank, or to receive data from it. Neither copies:
// the memory must stay valid until *r is complete.
void carry_send(const void *data, size_t bytes, int rank, MPI_Request *r);
void carry_receive(void *buffer, size_t bytes, int rank, MPI_Request *r);

// Waits for one of n requests until `until_ns` of now_ns() (0: tests once) or
// until *wake is set. Some requests may be MPI_REQUEST_NULL. Returns the index
// of the complete request and fills *status; -1: none is complete.
int carry_wait(MPI_Request *r, int n, uint64_t until_ns,
               const atomic_bool *wake, MPI_Status *status);

enum { CARRY_EAGER = 11, CARRY_DATA = 12 }; // tags
