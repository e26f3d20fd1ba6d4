// layouts_cute.cpp - prints which numbers each lane of a warp holds in
// mma.m16n8k16 and in ldmatrix.x4, as CuTe's headers say. test_layouts.c reads
// this.

#include <cuda_runtime.h>

#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>

#include <cstdio>

// Prints a line with the index of the element that each value of each lane is.
// `unit`: how many of the layout's units an element has: 1, or its bits.
template <class Layout>
static void print_layout(const Layout &layout, int values, int unit)
{
    for (int lane = 0; lane < 32; lane++)
        for (int v = 0; v < values; v++)
            printf("%d ", int(layout(lane, v * unit)) / unit);
    printf("\n");
}

int main()
{
    typedef cute::MMA_Traits<cute::SM80_16x8x16_F32BF16BF16F32_TN> mma;
    print_layout(mma::ALayout{}, 8, 1); // m + 16 k
    print_layout(mma::BLayout{}, 4, 1); // n + 8 k
    print_layout(mma::CLayout{}, 4, 1); // m + 16 n
    typedef cute::Copy_Traits<cute::SM75_U32x4_LDSM_N> as_it_lies;
    typedef cute::Copy_Traits<cute::SM75_U16x8_LDSM_T> transposed;
    print_layout(as_it_lies::SrcLayout{}, 8, 16); // of 32 rows of 8
    print_layout(as_it_lies::DstLayout{}, 8, 16);
    print_layout(transposed::SrcLayout{}, 8, 16);
    print_layout(transposed::DstLayout{}, 8, 16);
}
