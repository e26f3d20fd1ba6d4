// law_mesh.h - bytes of a model that is cut into stages (pp) and slices (tp).
//
// Notation: N rows of a micro-batch, m micro-batches a step, C channels, V
// symbols, b bytes of an activation, p stages, v chunks on each stage, t
// slices, L layers on this stage. Bytes that one rank sends in a step:
//
//     stage    m N C b  for each chunk that does not end the model (forward)
//              m N C b  for each that does not begin it (backward)
//              4 V C/t  first and last stage: the tied table's gradient
//              4 V C/t  first stage, if replicas may add this gradient in
//                       another order on the last one: the table itself
//              16 (p-1) norm and loss
//     slice    m (4 L + 2) joins (sums over all slices) of N C floats around a
//              ring: 2 for each layer in forward, 2 in backward, 1 for the
//              embeddings in forward, 1 for the head in backward; with
//              recompute one more for each layer, in backward. Also m gathers
//              of 3 floats for each row and slice, for the loss, and 8 (t-1)
//              bytes for the norm
//
// With tp_sequence=1 slices divide the rows between the products: a stage sends
// 1/t of N, and a slice sends
//
//     sums     m (4 L + 2) reduce-scatters of N C floats where the joins are
//     rows     m (6 L + 2) all-gathers of N C b bytes: 2 for each layer in
//              forward, 4 in backward, 1 for the head, 1 for the embeddings'
//              gradient; with recompute two more for each layer
//     norms    m (2 L + 1) gathers of 2 C floats from each slice
//
// and what it sends for the loss and the norm. A reduce-scatter or an
// all-gather is half an all-reduce, so in fp32 a layer sends 10/8 of the bytes
// of joins. (Korthikanti et al., "Reducing activation recomputation in large
// transformer models", 2022, keep the LayerNorms' outputs on every slice only
// in forward, as we do.)
//
// Slices are those of Shoeybi et al., "Megatron-LM", 2019. The loss is as in
// Narayanan et al., 2021: no row of logits travels.

#ifndef SYNC_LAW_MESH_H
#define SYNC_LAW_MESH_H

struct law_mesh {
    double rows, channels, vocab, width; // width: b
    int micro, stages, chunks, slices;
    int layers; // of this stage
    int stage;
    int recompute; // bool: backward computes the layers' activations again
    int aligned;   // bool: the first stage sends its table to the last one
    int sequence;  // bool: slices divide the rows between the products
};

// Whether the bits of a sum over replicas may depend on where in its vector an
// element is: the order of the additions does, which matters with more than two
// replicas, or with numbers that are rounded on their way.
int law_mesh_order_matters(int replicas, int wire_bytes);

// Bytes of payload that a rank sends in a step between stages, and between
// slices. 0 with one stage, or with one slice.
double law_mesh_stages(const struct law_mesh *m);
double law_mesh_slices(const struct law_mesh *m);

// Joins (sums over all slices) in one micro-batch: in its forward, or in its
// backward.
int law_mesh_joins(const struct law_mesh *m, int backward);

// With `sequence`: all-gathers of rows in one micro-batch, and gathers of the
// gradients of LayerNorms (in backward only). Else 0.
int law_mesh_gathers(const struct law_mesh *m, int backward);
int law_mesh_norms(const struct law_mesh *m, int backward);

// For the sum of a vector around a ring of n, each member sends 2 (n-1)/n times
// the vector's bytes. Returns this factor.
double law_mesh_sum(int n);

#endif
