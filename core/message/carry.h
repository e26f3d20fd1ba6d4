// carry.h - the few things that messages over MPI ask of MPI.
//
// They are apart so that a simulation (simulate/) can put others in their
// place: ones that block instead of looking again, and messages without
// contents.

#ifndef MESSAGE_CARRY_H
#define MESSAGE_CARRY_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A buffer for the data of a message that is to come; NULL after fail().
void *carry_buffer(size_t bytes);
void carry_free(void *buffer); // takes NULL

// Begin to move data to or from a rank, from or to where they lie.
void carry_send(const void *data, size_t bytes, int rank, MPI_Request *r);
void carry_receive(void *buffer, size_t bytes, int rank, MPI_Request *r);

// Wait for one of n requests, of which some may be MPI_REQUEST_NULL, until that
// time of now_ns() (0: only look) or until *wake is set. Which; -1: none.
int carry_wait(MPI_Request *r, int n, uint64_t until_ns,
               const atomic_bool *wake, MPI_Status *status);

enum { CARRY_EAGER = 11, CARRY_DATA = 12 }; // tags

#endif
