// fake_openblas.c - a fake OpenBLAS for tests of the benchmark. With FAKE_SGEMM
// its products do nothing and take no time. Without, it has no products.

#ifdef FAKE_SGEMM
void cblas_sgemm(void);
void openblas_set_num_threads(int threads);
const char *openblas_get_corename(void);

void cblas_sgemm(void)
{
}

void openblas_set_num_threads(int threads)
{
    (void)threads;
}

const char *openblas_get_corename(void)
{
    return "a fake";
}
#else
const int openblas_nothing = 1;
#endif
