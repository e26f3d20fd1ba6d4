// calls.h - lab 16: the grader's calls of the functions of pieces.c.

#ifndef LABS_PIECES_CALLS_H
#define LABS_PIECES_CALLS_H

#include "labs/16-pieces/pieces.h"

enum {
    PIECE_CUT,
    PIECE_HELD,
    PIECE_BLOCKS,
    PIECE_MERGE,
    PIECE_FINISH,
    PIECE_ATTENTION
};

#endif
