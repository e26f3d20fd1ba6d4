// ptx.cpp - mma, ldmatrix, cvt.rna.tf32, ex2 and cp.async by the PTX ISA.
//
// With g = lane / 4 and t = lane % 4 (PTX ISA, "Warp-level matrix fragment"):
//
//     C, D            c0, c1: row g;  c2, c3: row g + 8;  columns 2t, 2t + 1
//     A, 16 bits      a pair a register: (g, 2t) (g+8, 2t) (g, 2t+8) (g+8,2t+8)
//     B, 16 bits      (2t, g) (2t+8, g), pairs down the column
//     A, tf32         (g, t) (g+8, t) (g, t+4) (g+8, t+4)
//     B, tf32         (t, g) (t+4, g)
//
// Lanes write their shares of A and B into the warp's exchange, wait for each
// other, and sum up their own elements of D in fp32, with rising k. A GPU may
// add in another order.

#include "tests/emulated_cuda/ptx.h"

#include "base/half.h"
#include "tests/emulated_cuda/block.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

namespace emulated
{

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

// Reads operands such as {%0, %1}, [%2], %3 into groups of numbers.
void ptx::read_operands(const char *s)
{
    bool inside = false;
    for (groups = 0; *s; s++) {
        if (*s == '{' || *s == '[') {
            inside = true;
            size[groups] = 0;
        } else if (*s == '}' || *s == ']') {
            inside = false;
            groups++;
        } else if (*s == '%') {
            if (!inside)
                size[groups] = 0;
            if (groups == GROUPS || size[groups] == GROUP)
                stop("too many operands: %s", text);
            at[groups][size[groups]++] = atoi(s + 1);
            groups += !inside;
        }
    }
}

ptx::ptx(const char *words) : text(words), run(nullptr)
{
    char types[32] = "";
    if (sscanf(text, "mma.sync.aligned.m16n8k%d.row.col.%31s ", &shape_k,
               types) == 2) {
        bf16 = !strcmp(types, "f32.bf16.bf16.f32");
        tf32 = !strcmp(types, "f32.tf32.tf32.f32");
        if ((bf16 && shape_k == 16) || (tf32 && shape_k == 8) ||
            (!strcmp(types, "f32.f16.f16.f32") && shape_k <= 16))
            run = run_mma;
    } else if (sscanf(text, "ldmatrix.sync.aligned.m8n8.x%d.", &matrices) ==
               1) {
        trans = strstr(text, ".trans.shared.b16 ");
        if (matrices == 4 && (trans || strstr(text, "x4.shared.b16 ")))
            run = run_ldmatrix;
    } else if (begins(text, "cvt.rna.tf32.f32 ")) {
        run = run_tf32;
    } else if (begins(text, "ex2.approx.ftz.f32 ")) {
        run = run_ex2;
    } else if (sscanf(text, "cp.async.%*2[cag].shared.global [%%0], [%%1], %d,",
                      &bytes) == 1) {
        bool whole = begins(text, "cp.async.cg"); // past the first cache
        if (whole ? bytes == 16 : bytes == 4)
            run = run_copy;
    } else if (!strcmp(text, "cp.async.wait_all;")) {
        run = run_wait;
    }
    if (!run)
        stop("no such instruction is emulated: %s", text);
    read_operands(strpbrk(text, " ;"));
}

void ptx::operator()(std::initializer_list<reg> operands) const
{
    for (int g = 0; g < groups; g++)
        for (int i = 0; i < size[g]; i++)
            if ((size_t)at[g][i] >= operands.size())
                stop("operand %%%d is missing: %s", at[g][i], text);
    run(*this, operands.begin());
}

static float number(uint32_t bits, bool bf16)
{
    uint16_t low = (uint16_t)bits;
    return bf16 ? bf16_to_float(low) : f16_to_float(low);
}

void ptx::run_mma(const ptx &p, const reg *r)
{
    int g = (int)self.lane / 4, t = (int)self.lane % 4, n = p.shape_k;
    int in_a = n * 16 / 32 / (p.tf32 ? 1 : 2), in_b = in_a / 2;
    if (p.groups != 4 || p.size[0] != 4 || p.size[1] != in_a ||
        p.size[2] != in_b || p.size[3] != 4)
        stop("operands do not fit: %s", p.text);
    struct exchange *exchange = self.exchange;
    for (int i = 0; i < in_a; i++) { // registers alternate between g and g + 8
        uint32_t bits = (uint32_t)r[p.at[1][i]].in;
        float *row = exchange->a[g + i % 2 * 8];
        if (p.tf32) {
            row[t + i / 2 * 4] = bits_float(bits & 0xffffe000);
        } else {
            row[2 * t + i / 2 * 8] = number(bits, p.bf16);
            row[2 * t + i / 2 * 8 + 1] = number(bits >> 16, p.bf16);
        }
    }
    for (int i = 0; i < in_b; i++) {
        uint32_t bits = (uint32_t)r[p.at[2][i]].in;
        float *column = exchange->b[g];
        if (p.tf32) {
            column[t + i * 4] = bits_float(bits & 0xffffe000);
        } else {
            column[2 * t + i * 8] = number(bits, p.bf16);
            column[2 * t + i * 8 + 1] = number(bits >> 16, p.bf16);
        }
    }
    meet_warp(p.text, 0xffffffff);
    for (int i = 0; i < 4; i++) {
        const float *a = exchange->a[g + i / 2 * 8],
                    *b = exchange->b[2 * t + i % 2];
        float sum = bits_float((uint32_t)r[p.at[3][i]].in);
        for (int k = 0; k < n; k++)
            sum += a[k] * b[k];
        memcpy(r[p.at[0][i]].out, &sum, sizeof sum);
    }
}

// Lane l < 8 * matrices gives the address of row l % 8 of matrix l / 8. Each
// lane gets two neighbours of row g of every matrix, or with .trans of column
// g.
void ptx::run_ldmatrix(const ptx &p, const reg *r)
{
    int l = (int)self.lane, g = l / 4, t = l % 4;
    if (p.groups != 2 || p.size[0] != p.matrices || p.size[1] != 1)
        stop("operands do not fit: %s", p.text);
    struct exchange *exchange = self.exchange;
    if (l < 8 * p.matrices) {
        uint32_t address = (uint32_t)r[p.at[1][0]].in;
        if (address % 16)
            stop("a row begins at %u, no multiple of 16: %s", address, p.text);
        memcpy(exchange->rows[l], shared_at(address), sizeof exchange->rows[l]);
    }
    meet_warp(p.text, 0xffffffff);
    for (int m = 0; m < p.matrices; m++) {
        uint16_t(*rows)[8] = exchange->rows + 8 * m;
        uint32_t low = p.trans ? rows[2 * t][g] : rows[g][2 * t];
        uint32_t high = p.trans ? rows[2 * t + 1][g] : rows[g][2 * t + 1];
        uint32_t both = low | high << 16;
        memcpy(r[p.at[0][m]].out, &both, sizeof both);
    }
}

// Rounds to nearest, with ties away from zero.
void ptx::run_tf32(const ptx &p, const reg *r)
{
    uint32_t bits = (uint32_t)r[p.at[1][0]].in;
    if ((bits & 0x7f800000) != 0x7f800000)
        bits = (bits + 0x1000) & 0xffffe000;
    memcpy(r[p.at[0][0]].out, &bits, sizeof bits);
}

// Denormal numbers are 0, as arguments and as results.
void ptx::run_ex2(const ptx &p, const reg *r)
{
    float x = bits_float((uint32_t)r[p.at[1][0]].in);
    float y = exp2f(fabsf(x) < FLT_MIN ? 0 : x);
    y = y < FLT_MIN ? 0 : y;
    memcpy(r[p.at[0][0]].out, &y, sizeof y);
}

// [%0], [%1], bytes, %2: reads %2 bytes, and fills up with zeros to `bytes`.
void ptx::run_copy(const ptx &p, const reg *r)
{
    uint32_t to = (uint32_t)r[p.at[0][0]].in, n = (uint32_t)r[p.at[2][0]].in;
    uint64_t from = r[p.at[1][0]].in;
    unsigned bytes = (unsigned)p.bytes;
    if (to % bytes || (n && from % bytes))
        stop("%u to %#llx, no multiples of %u: %s", to,
             (unsigned long long)from, bytes, p.text);
    if (n > bytes)
        stop("%u bytes of %u: %s", n, bytes, p.text);
    copy_later(shared_at(to), (const void *)(uintptr_t)from, n, bytes);
}

void ptx::run_wait(const ptx &, const reg *)
{
    copies_arrive();
}

} // namespace emulated
