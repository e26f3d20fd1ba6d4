// house.c - lab 0: the price of a house, learned with SGD by 1, 2 or 4 workers.
//
//     prediction  p = w x + b        x: size in 100 m2, y: price in 100,000
//     loss        mean of (p - y)^2
//     gradient    dw = mean of 2 (p - y) x,   db = mean of 2 (p - y)
//     update      w -= rate dw,  b -= rate db
//
// With n workers each has 4/n of the houses, and the gradient is the mean of
// theirs. README.md computes the first step by hand.

#include <stdio.h>
#include <stdlib.h>

enum { HOUSES = 4, STEPS = 3 };

static const double x[HOUSES] = {1, 2, 3, 4};
static const double y[HOUSES] = {3, 5, 7, 9};
static const double rate = 0.1;

struct gradient {
    double dw, db, loss;
};

// The gradient of houses from .. from + n - 1.
static struct gradient backward(double w, double b, int from, int n)
{
    struct gradient g = {0, 0, 0};
    for (int i = from; i < from + n; i++) {
        double error = w * x[i] + b - y[i];
        g.loss += error * error / n;
        g.dw += 2 * error * x[i] / n;
        g.db += 2 * error / n;
    }
    return g;
}

int main(int argc, char **argv)
{
    int workers = argc > 1 ? atoi(argv[1]) : 1;
    double w = 0, b = 0;
    if (workers != 1 && workers != 2 && workers != 4) {
        fprintf(stderr, "house: 1, 2 or 4 workers, not %s\n", argv[1]);
        return 2;
    }
    for (int step = 1; step <= STEPS; step++) {
        struct gradient mean = {0, 0, 0};
        int n = HOUSES / workers;
        for (int r = 0; r < workers; r++) {
            struct gradient g = backward(w, b, r * n, n);
            if (workers > 1)
                printf("  worker %d   dw %7.2f  db %7.2f\n", r, g.dw, g.db);
            mean.loss += g.loss / workers;
            mean.dw += g.dw / workers; // all workers get this mean
            mean.db += g.db / workers;
        }
        w -= rate * mean.dw;
        b -= rate * mean.db;
        printf("step %d  loss %6.2f  dw %7.2f  db %7.2f  w %5.2f  b %5.2f\n",
               step, mean.loss, mean.dw, mean.db, w, b);
    }
    return 0;
}
