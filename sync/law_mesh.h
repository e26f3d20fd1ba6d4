// law_mesh.h - bytes of a model that is cut into stages (pp) and slices (tp).
//
// N rows of a micro-batch, m of them in a step, C channels, V symbols, b bytes
// of an activation. What a rank of p stages with v chunks and t slices sends:
//
//     stage    m N C b  for each chunk that does not end the model (forward)
//              m N C b  for each that does not begin it (backward)
//              4 V C/t  first and last: the tied table's gradient
//              16 (p-1) norm and loss
//     slice    m (4 L + 2) joins of N C floats around a ring, of L layers here:
//              two a layer forward, two backward; embeddings forward, head
//              backward; with recompute one more a layer, backward; m gathers
//              of 3 floats a row and slice, for the loss; 8 (t-1) for the norm
//
// Slices are those of Shoeybi et al., "Megatron-LM", 2019; the loss as in
// Narayanan et al., 2021, without a row of logits on its way.

#ifndef SYNC_LAW_MESH_H
#define SYNC_LAW_MESH_H

struct law_mesh {
    double rows, channels, vocab, width; // width: b
    int micro, stages, chunks, slices;
    int layers; // of this stage
    int stage;
    int recompute; // bool: layers' activations are made twice
};

// Payload out of a rank in a step between stages, and among slices; 0 of one
// stage, one slice.
double law_mesh_stages(const struct law_mesh *m);
double law_mesh_slices(const struct law_mesh *m);

// Sums over all slices in a forward and in a backward of one micro-batch.
int law_mesh_joins(const struct law_mesh *m, int backward);

// Those of its layers alone.
int law_mesh_layer_joins(const struct law_mesh *m, int backward);

// Share of a vector that a member of a ring of n sends for its sum: 2 (n-1)/n.
double law_mesh_sum(int n);

#endif
