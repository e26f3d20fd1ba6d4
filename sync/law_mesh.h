// law_mesh.h - bytes of a model that is cut into stages (pp) and slices (tp),
// and of sequences that workers divide (cp).
//
// Notation: N rows of a micro-batch, m micro-batches a step, C channels, V
// symbols, b bytes of an activation, p stages, v chunks on each stage, t
// slices, L layers on this stage. Bytes that one rank sends in a step:
//
//     stage    m N C b  for each chunk that does not end the model (forward)
//              m N C b  for each that does not begin it (backward)
//              4 V C/t  first and last stage: the tied table's gradient
//              4 V C/t  first stage, if replicas may add this gradient in
//                       another order on the last one: the table itself; half
//                       of it where only its 16-bit copy is whole (zero)
//              16 (p-1) norm and loss
//     slice    m (4 L + 2) joins (sums over all slices) of N C floats around a
//              ring: 2 for each layer in forward, 2 in backward, 1 for the
//              embeddings in forward, 1 for the head in backward; with
//              recompute one more for each layer, in backward. Also m gathers
//              of 3 floats for each row and slice, for the loss, and 8 (t-1)
//              bytes for the norm. If slices differ in length, and replicas may
//              add gradients in another order on each: a sum of (6 L + 2) C
//              floats, and of T C more on the first stage, T tokens: what all
//              slices have. (The last 2 C are ln_f's, on the last stage only.)
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
// transformer models", 2022.) With tp_sequence=2 layers keep the LayerNorms'
// outputs of all rows; backward then gathers rows only twice for each layer.
// With tp_wire= of 16 bits the numbers of joins and sums take 2 bytes.
//
// With mesh=cpN N workers have a part of the rows each, so stages and slices
// send 1/N of the above. A worker sends to the others in a step
//
//     keys       2 m L times 2 (N-1)/N R C b bytes, keys and values of all R
//                rows: in forward, and again in backward; with recompute once
//                more in backward
//     gradients  m L times 8 (N-1)/N R C bytes: of keys and values, in fp32
//     loss       8 (N-1) bytes
//
// or, if they exchange heads for tokens (attention_over=heads), q, k, v and the
// result, and their gradients; with recompute 3/2 of it. (N-1)/N is exact if N
// divides the heads and the tokens; else it is 1 less the mean of what a worker
// has already.
//
//     heads      m L times 8 (N-1)/N R C b / N bytes
//
// With mesh=cpN,upU groups of U workers exchange heads, each for its R/N rows,
// and then N workers exchange the keys of C/U channels (Fang and Zhao, "USP",
// 2024):
//
//     heads      m L times 8 (U-1)/U R C b / (N U) bytes
//     keys, gradients    1/U of those above
//     loss       8 (U-1) + 8 (N-1) bytes
//
// (Liu et al., "Ring attention", 2023; a share of the gradients that a worker
// computes of its own keys does not travel.) With slices C is a slice's share.
//
// Slices are those of Shoeybi et al., "Megatron-LM", 2019. The loss is as in
// Narayanan et al., 2021: no row of logits travels.

#pragma once

struct law_mesh {
    double rows, channels, width; // width: b
    double sum; // bytes of a number of a join, or of a reduce-scatter of rows
    int vocab;
    int micro, stages, chunks, slices;
    int layers; // of this stage
    int stage;
    double recompute; // the share of layers whose activations backward computes
                      // again
    int aligned;      // bytes of an element of what is aligned after an update,
                      // because law_mesh_order_matters(); 0: nothing is
    int sequence;     // tp_sequence=
    int pieces; // workers that divide sequences; 0 or 1: sequences are whole
    int up;     // of them, those that exchange heads with each other
    int tokens, heads; // of a sequence; of the whole model
};

// Whether the bits of a sum over replicas may depend on where in its vector an
// element is: the order of the additions does, which matters with more than two
// replicas, or with numbers that are rounded on their way.
int law_mesh_order_matters(int replicas, int wire_bytes);

// Bytes of payload that a rank sends in a step between stages, and between
// slices, and between workers that divide sequences. 0 with one of them. If the
// rows do not divide evenly, it is the mean of these workers.
double law_mesh_stages(const struct law_mesh *m);
double law_mesh_slices(const struct law_mesh *m);
double law_mesh_pieces(const struct law_mesh *m);

// What of it is sent for heads, and for the loss in the groups that exchange
// them.
double law_mesh_groups(const struct law_mesh *m);

// Bytes that such a worker sends in one layer of a micro-batch, in its forward
// or in its backward: heads, or keys and their gradients.
double law_mesh_heads(const struct law_mesh *m, int backward);
double law_mesh_keys(const struct law_mesh *m, int backward);

// Joins (sums over all slices) in one micro-batch: in its forward, or in its
// backward.
double law_mesh_joins(const struct law_mesh *m, int backward);

// With `sequence`: all-gathers of rows in one micro-batch, and gathers of the
// gradients of LayerNorms (in backward only). Else 0.
double law_mesh_gathers(const struct law_mesh *m, int backward);
int law_mesh_norms(const struct law_mesh *m, int backward);
