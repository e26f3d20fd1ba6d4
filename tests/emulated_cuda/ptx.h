// ptx.h - the few PTX instructions that Lockstep's code contains, by name and
// operands, with the layouts of fragments that the PTX ISA shows.

#pragma once

#include <initializer_list>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace emulated
{

// An operand: the address of an output, or a copy of an input. Only addresses
// of global memory have more than 32 bits.
struct reg {
    void *out;
    uint64_t in;
};

template <typename T> reg output(T &x)
{
    static_assert(sizeof(T) == 4, "a register has 32 bits");
    reg r = {&x, 0};
    memcpy(&r.in, &x, sizeof x); // "+": read as well
    return r;
}

template <typename T> reg input(const T &x)
{
    static_assert(sizeof(T) == 4, "a register has 32 bits");
    reg r = {nullptr, 0};
    memcpy(&r.in, &x, sizeof x);
    return r;
}

template <typename T> reg input(const T *x)
{
    return {nullptr, (uint64_t)(uintptr_t)x};
}

// One `asm` of the source. Its text is parsed once.
class ptx
{
  public:
    explicit ptx(const char *text);
    void operator()(std::initializer_list<reg> operands) const;

    static constexpr int GROUPS = 4, GROUP = 4;

  private:
    const char *text;
    void (*run)(const ptx &, const reg *);
    int shape_k;           // of mma
    bool bf16, tf32;       // format of mma's factors
    int matrices;          // of ldmatrix
    bool trans;            // of ldmatrix
    int bytes;             // of cp.async
    int groups;            // of operands: {..}, [..] or single ones
    int size[GROUPS];      // registers in a group
    int at[GROUPS][GROUP]; // their numbers N, from %N

    void read_operands(const char *s);
    static void run_mma(const ptx &, const reg *);
    static void run_ldmatrix(const ptx &, const reg *);
    static void run_tf32(const ptx &, const reg *);
    static void run_ex2(const ptx &, const reg *);
    static void run_copy(const ptx &, const reg *);
    static void run_wait(const ptx &, const reg *);
};

} // namespace emulated
