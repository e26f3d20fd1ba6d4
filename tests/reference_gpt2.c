// reference_gpt2.c - GPT-2 in double precision, deliberately without
// optimisations.

#include "tests/reference_gpt2.h"

#include "model/cpu/mask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *doubles(size_t n)
{
    double *p = calloc(n, sizeof *p);
    if (!p)
        abort();
    return p;
}

void ref_linear(double *out, const double *in, const double *w, const double *b,
                int rows, int ins, int outs)
{
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outs; o++) {
            double sum = b ? b[o] : 0;
            for (int i = 0; i < ins; i++)
                sum += in[r * ins + i] * w[i * outs + o];
            out[r * outs + o] = sum;
        }
}

void ref_norm(double *out, const double *in, const double *w, const double *b,
              int rows, int C)
{
    for (int r = 0; r < rows; r++) {
        const double *x = in + r * C;
        double mean = 0, var = 0;
        for (int c = 0; c < C; c++)
            mean += x[c] / C;
        for (int c = 0; c < C; c++)
            var += (x[c] - mean) * (x[c] - mean) / C;
        for (int c = 0; c < C; c++)
            out[r * C + c] = (x[c] - mean) / sqrt(var + 1e-5) * w[c] + b[c];
    }
}

void ref_gelu(double *out, const double *in, int n)
{
    for (int i = 0; i < n; i++) {
        double x = in[i], u = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
        out[i] = 0.5 * x * (1 + tanh(u));
    }
}

void ref_attention(double *out, const double *qkv, int B, int T, int C, int NH,
                   const struct mask *mask)
{
    int D = C / NH;
    double *p = doubles(T);
    for (int bh = 0; bh < B * NH; bh++)
        for (int t = 0; t < T; t++) {
            const double *first = qkv + (size_t)(bh / NH) * T * 3 * C;
            const double *q = first + t * 3 * C + bh % NH * D;
            double *o = out + ((size_t)(bh / NH) * T + t) * C + bh % NH * D;
            double sum = 0;
            for (int j = 0; j <= t; j++) {
                const double *k = first + j * 3 * C + C + bh % NH * D;
                double score = 0;
                for (int d = 0; d < D; d++)
                    score += q[d] * k[d] / sqrt(D);
                sum += p[j] = exp(score);
            }
            memset(o, 0, D * sizeof *o);
            for (int j = 0; j <= t; j++) {
                const double *v = first + j * 3 * C + 2 * C + bh % NH * D;
                double share = p[j] / sum;
                if (mask && mask->threshold)
                    share *= mask_at(mask, mask_row(mask, bh * T + t), j);
                for (int d = 0; d < D; d++)
                    o[d] += share * v[d];
            }
        }
    free(p);
}

void ref_loss(double *loss, const double *logits, const int32_t *y, int rows,
              int V)
{
    for (int r = 0; r < rows; r++) {
        const double *l = logits + (size_t)r * V;
        double max = l[0], sum = 0;
        for (int j = 0; j < V; j++)
            max = fmax(max, l[j]);
        for (int j = 0; j < V; j++)
            sum += exp(l[j] - max);
        loss[r] = max + log(sum) - l[y[r]];
    }
}

// The next `n` parameters.
static const double *next(const double **p, size_t n)
{
    const double *at = *p;
    *p += n;
    return at;
}

// x += proj(attention(qkv(ln_1(x)))); x += out(gelu(fc(ln_2(x))))
static void layer(const struct model_config *c, const double **p, double *x,
                  int B, int T)
{
    int C = c->channels, rows = B * T;
    double *norm = doubles(rows * C), *wide = doubles(rows * 4 * C);
    double *branch = doubles(rows * C);
    const double *w = next(p, C), *b = next(p, C);
    ref_norm(norm, x, w, b, rows, C);
    w = next(p, 3 * C * C), b = next(p, 3 * C);
    ref_linear(wide, norm, w, b, rows, C, 3 * C);
    ref_attention(norm, wide, B, T, C, c->heads, NULL);
    w = next(p, C * C), b = next(p, C);
    ref_linear(branch, norm, w, b, rows, C, C);
    for (int i = 0; i < rows * C; i++)
        x[i] += branch[i];
    w = next(p, C), b = next(p, C);
    ref_norm(norm, x, w, b, rows, C);
    w = next(p, 4 * C * C), b = next(p, 4 * C);
    ref_linear(wide, norm, w, b, rows, C, 4 * C);
    ref_gelu(wide, wide, rows * 4 * C);
    w = next(p, 4 * C * C), b = next(p, C);
    ref_linear(branch, wide, w, b, rows, 4 * C, C);
    for (int i = 0; i < rows * C; i++)
        x[i] += branch[i];
    free(norm);
    free(wide);
    free(branch);
}

double ref_gpt2(const struct model_config *c, const double *params,
                const int32_t *tokens, const int32_t *y, int B, int T,
                double *logits)
{
    int C = c->channels, V = c->vocab, rows = B * T;
    const double *p = params, *wte = next(&p, (size_t)V * C);
    const double *wpe = next(&p, (size_t)c->context * C);
    double *x = doubles(rows * C), *norm = doubles(rows * C);
    double *scores = doubles((size_t)rows * V), *loss = doubles(rows);
    for (int i = 0; i < rows * C; i++)
        x[i] = wte[tokens[i / C] * C + i % C] + wpe[i / C % T * C + i % C];
    for (int i = 0; i < c->layers; i++)
        layer(c, &p, x, B, T);
    const double *w = next(&p, C), *b = next(&p, C);
    ref_norm(norm, x, w, b, rows, C);
    for (int i = 0; i < rows * V; i++)
        for (int k = 0; k < C; k++)
            scores[i] += norm[i / V * C + k] * wte[i % V * C + k];
    ref_loss(loss, scores, y, rows, V);
    double sum = 0;
    for (int r = 0; r < rows; r++)
        sum += loss[r] / rows;
    if (logits)
        memcpy(logits, scores, (size_t)rows * V * sizeof *logits);
    free(x);
    free(norm);
    free(scores);
    free(loss);
    return sum;
}
