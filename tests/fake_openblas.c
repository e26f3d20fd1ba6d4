// fake_openblas.c - a library of OpenBLAS's name, for the bench's lower bound:
// with FAKE_SGEMM its products take no time, else it has none.

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
