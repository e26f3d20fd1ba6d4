// base.h - errors, logging, clock, memory and hashing: what every folder uses.
//
// Errors: the function that first knows the cause calls fail("what: values")
// and returns its -1. Its callers pass the -1 on. A program's main() prints
// fail_message() once and exits. die() is for programs. CHECK() is for our own
// bugs.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

// Record a one-line message (thread-local, replaced by the next) and return -1.
int fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

// The last message of this thread; "" if nothing failed. Valid until the next
// fail() of this thread.
const char *fail_message(void);

// Writes "program: message\n" to stderr in one write, after log_set_rank()
// "program[rank]: message\n". The message is the reason why the program is
// about to end. die() also exits, with status 1.
void log_error(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), cold));
_Noreturn void die(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), cold));

// The first call of a program's main(). A closed standard input, output or
// error becomes /dev/null, or else the next file would take its number. If what
// was printed to stdout is not all written when the program ends, it says so
// and the exit status is 1; if nobody reads any more, SIGPIPE ends it.
void streams_begin(void);

// For a program that the launcher may have started. If the launcher did start
// it (LOCKSTEP_PROGRESS is set), errors begin with LOG_ERROR_MARK instead of
// the program's name. The launcher prints each of them once, on a line of its
// own.
#define LOG_ERROR_MARK "@error "
void log_for_launcher(void);

// For a program that a command of lockstep starts: its errors begin with
// "lockstep: ", since its own name is not in PATH.
void log_as_lockstep(void);

// If cond is false, prints file, line and cond, and aborts, in release builds,
// too. Never for bad input.
#define CHECK(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))
_Noreturn void check_failed(const char *file, int line, const char *cond);

// Writes "[rank] message\n" to stderr in one write, without "[rank] " if
// log_set_rank() was not called. For events that a person must see, never for
// every step.
void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_set_rank(int rank);

// In nanoseconds: the monotonic wall clock, and the CPU time of this process.
uint64_t now_ns(void);
uint64_t cpu_process_ns(void);

// Puts the calling thread to sleep for ns nanoseconds, even if signals arrive.
void sleep_ns(uint64_t ns);

// Zeroed memory for n objects of `size` bytes, aligned to 64 bytes. Blocks of 1
// MiB and more are placed on huge pages, as far as they fill some, and return
// to the system when they are freed. NULL after fail() if there is no memory or
// n * size overflows. mem_free() frees it, and takes NULL.
void *mem_alloc(size_t n, size_t size) __attribute__((malloc));
void mem_free(void *p);

// From now on free() keeps malloc()'s blocks of up to 32 MiB in the process
// instead of returning them to the system. For a process that receives every
// message in a new block, or whose library allocates in every call: otherwise
// each 4 KiB of the next block costs a page fault.
void mem_keep(void);

// In bytes, 0 if unknown: the memory that this machine can still give
// (MemAvailable, or what the cgroup's limit leaves, if that is less), and the
// resident size of this process: now, and the largest so far.
size_t mem_available(void);
size_t mem_now(void);
size_t mem_peak(void);

// Bytes as text for people: "1.5 GiB". Writes into buf, returns buf.
char *mem_text(char buf[32], size_t bytes);

// 64-bit hash (XXH3) of n bytes. hash_more() chains: pass the previous result.
uint64_t hash_bytes(const void *p, size_t n);
uint64_t hash_more(uint64_t hash, const void *p, size_t n);

// snprintf that fails instead of truncating: 0, or -1 after fail().
int text_into(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Replaces control characters by '?'. A terminal would obey them, and names of
// files or texts from other processes may contain them.
void text_visible(char *text);

#ifdef __cplusplus
}
#endif
