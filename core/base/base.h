// base.h - errors, logging, clock, memory and hashing: what every folder uses.
//
// Errors: whoever first knows the cause calls fail("what: values") and returns
// its -1; everyone above passes -1 on; a program's main() prints fail_message()
// once and exits. die() is for programs, CHECK() for our own bugs.

#ifndef BASE_BASE_H
#define BASE_BASE_H

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

// Write "program: message\n" to stderr in one write: the reason for which a
// program is about to end. die() exits as well, with status 1.
void log_error(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), cold));
_Noreturn void die(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), cold));

// For a program that a launcher may have started (LOCKSTEP_PROGRESS is set
// then): errors begin with LOG_ERROR_MARK instead of the program's name. The
// launcher prints them once, in a line of its own.
#define LOG_ERROR_MARK "@error "
void log_for_launcher(void);

// Stop with file and line. Stays on in release builds; never for bad input.
#define CHECK(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))
_Noreturn void check_failed(const char *file, int line, const char *cond);

// Write "[rank] message\n" to stderr in one write; rank is left out before
// log_set_rank(). For events that a person must see; never once a step.
void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_set_rank(int rank);

// Nanoseconds: monotonic wall clock; CPU time of this process.
uint64_t now_ns(void);
uint64_t cpu_process_ns(void);

// The calling thread sleeps so long, whatever signals come.
void sleep_ns(uint64_t ns);

// Zeroed memory for n objects of `size` bytes, aligned to 64 bytes and, from
// 4 MiB, to huge pages. NULL after fail() when there is none or n*size
// overflows. mem_free() takes NULL.
void *mem_alloc(size_t n, size_t size) __attribute__((malloc));
void mem_free(void *p);

// From now on the process keeps freed blocks of up to 32 MiB for itself. For
// who is given every message in a block of its own: returning them costs a page
// fault for each 4 KiB of the next.
void mem_keep(void);

// Memory this machine can still give (MemAvailable, and the cgroup's limit) and
// the largest resident size of this process so far, in bytes; 0 if unknown.
size_t mem_available(void);
size_t mem_peak(void);

// Bytes as text for people: "1.5 GiB". Writes into buf, returns buf.
char *mem_text(char buf[32], size_t bytes);

// 64-bit hash (XXH3) of n bytes. hash_more() chains: pass the previous result.
uint64_t hash_bytes(const void *p, size_t n);
uint64_t hash_more(uint64_t hash, const void *p, size_t n);

// snprintf that fails instead of truncating: 0, or -1 after fail().
int text_into(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Replace what moves a terminal's cursor, or worse, by '?': names of files and
// words of strangers may hold it.
void text_visible(char *text);

#ifdef __cplusplus
}
#endif

#endif
