// keys.c - the table of every key, in the order of --help and run.json.
//
// An empty default means none. A choice's words are in the order of the enum
// that the comment beside them names. A row of [backend] sets a member of
// struct sync_settings. backends.def says which backends read it.

#include "config/keys.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/key_parts.h"
#include "config/mesh.h"

#include <stddef.h>
#include <string.h>

#define AT(member)   offsetof(struct run, member), false
#define SET(member)  offsetof(struct sync_settings, member), true
#define PARTS(name)  .read = name##_read, .show = name##_show
#define WORDS(...)   ((const char *const[]){__VA_ARGS__, NULL})
#define WIRE_FORMATS WORDS("fp32", "fp16", "bf16")

static const char *const squeeze_words[] = {
    "none",
#define COMPRESSOR(kind, word, ops) word,
#include "config/compressors.def"
#undef COMPRESSOR
    NULL,
};

static int check_endpoint(const char *key, const char *value)
{
    int count = 1;
    if (*value && endpoints_check(key, value, &count))
        return -1;
    return count == 1 ? 0
                      : fail("%s=%s: want one endpoint, as in tcp://host:port",
                             key, value);
}

// clang-format off
static const struct key rows[] = {
{"model", "model", "micro", KEY_WORD, AT(model), .check = key_check_not_empty,
 .help = "preset: nano micro baby gpt2 gpt2-medium gpt2-large gpt2-xl slides"},
{"model", "layers", "0", KEY_INT, AT(layers), 1, 1000, "preset",
 .unit = "blocks",
 .help = "number of transformer blocks"},
{"model", "heads", "0", KEY_INT, AT(heads), 1, 1024, "preset",
 .unit = "heads",
 .help = "number of attention heads; must divide channels"},
{"model", "channels", "0", KEY_INT, AT(channels), 1, 65536, "preset",
 .unit = "numbers",
 .help = "width of the residual stream"},
{"model", "context", "0", KEY_INT, AT(context), 1, 65536, "preset",
 .unit = "tokens",
 .help = "length of a sequence, and of the position table"},
{"model", "vocab_size", "0", KEY_INT, AT(vocab_size), 2, 1 << 20, "data",
 .unit = "symbols",
 .help = "rows of the token table; at least as many as the data need"},
{"model", "dropout", "0", KEY_NUMBER, AT(dropout), 0, 0.99,
 .unit = "rate",
 .help = "share of activations that are set to 0 in training"},
{"model", "init", "random", KEY_TEXT, AT(init), .check = key_check_not_empty,
 .local = true, .unit = "path",
 .help = "random weights, or a safetensors or llm.c checkpoint to start from"},
{"model", "precision", "fp32", KEY_CHOICE, AT(precision), // enum precision
 .words = WORDS("fp32", "bf16", "fp16", "tf32"),
 .help = "number format of weights and activations while computing; tf32: "
         "fp32, but on a GPU products may round their factors to TF32"},

{"data", "data", "", KEY_TEXT, AT(data), .local = true, .unit = "path",
 .help = "a text, a .bin file of tokens, or a folder with train.bin and "
         "val.bin; without it the C headers in /usr/include"},
{"data", "vocab", "bytes", KEY_TEXT, AT(vocab), .local = true, .unit = "path",
 .help = "the tokens of a text: its bytes, its characters (chars), or the byte "
         "pairs or pieces of words of a file: vocab.bpe of GPT-2, or a "
         "vocab.txt of BERT"},
{"data", "val_fraction", "0.1", KEY_NUMBER, AT(val_fraction), 0, 0.9,
 .unit = "share",
 .help = "share of the text, from its end, held out for validation; 0: none"},
{"data", "order", "epoch", KEY_CHOICE, AT(order), // enum data_order
 .words = WORDS("epoch", "random"),
 .help = "epoch: each sequence once in an epoch, in an order by seed=; random: "
         "sequences that begin at any token, drawn as nanoGPT does"},

{"training", "batch", "8", KEY_INT, AT(batch), 1, 65536,
 .unit = "sequences",
 .help = "sequences of one worker in one micro-batch"},
{"training", "accum", "1", KEY_INT, AT(accum), 1, 65536,
 .unit = "micro-batches",
 .help = "micro-batches whose gradients are added before an update"},
{"training", "global_batch", "0", KEY_INT, AT(global_batch), 1, 1 << 30,
 "batch * accum * workers", .unit = "sequences",
 .help = "sequences of all workers in a step; sets accum where batch is "
         "given, else batch"},
{"training", "steps", "1000", KEY_INT, AT(steps), 1, 1e9,
 .unit = "steps",
 .help = "number of updates of the parameters"},
{"training", "epochs", "0", KEY_NUMBER, AT(epochs), 1e-6, 1e6, "use steps",
 .unit = "passes",
 .help = "passes over the training text; sets steps"},
{"training", "seed", "1", KEY_INT64, AT(seed), 0, 0x1p53 - 1,
 .help = "seed of initial weights, order of batches and dropout"},
{"training", "threads", "0", KEY_INT, AT(threads), 1, 4096, "share of cores",
 .local = true, .unit = "threads",
 .help = "threads of one worker"},
{"training", "recompute", "0", KEY_INT, AT(recompute), 0, 1,
 .help = "1: keep only the input of each layer, and let backward compute "
         "the rest again: the same bits, less memory, more time"},
{"training", "tune", "0", KEY_INT, AT(tune), 2, 16, "the library's first",
 .unit = "algorithms",
 .help = "cuda: how many of cuBLASLt's algorithms are timed for each shape of "
         "matrix product before the first step; the fastest is kept, so "
         "that another run may keep another one and compute other bits"},

{"training", "attention", "ours", KEY_CHOICE, AT(attention), // attention_by
 .words = WORDS("ours", "cudnn"),
 .help = "cuda, bf16 or fp16: whose kernels compute attention. cudnn: those "
         "of cuDNN 9.8 or newer, which is loaded for it; without dropout"},

{"optimizer", "optimizer", "adamw", KEY_CHOICE, AT(optimizer), // optim_kind
 .words = WORDS("adamw", "sgd", "lars", "lamb"),
 .help = "the update rule; lars, lamb: for large batches, on workers that "
         "update whole tensors"},
{"optimizer", "lr", "0.002", KEY_NUMBER, AT(lr), 1e-12, 100,
 .unit = "per step",
 .help = "peak learning rate"},
{"optimizer", "min_lr", "0.0001", KEY_NUMBER, AT(min_lr), 0, 100,
 .unit = "per step",
 .help = "learning rate to which the schedule falls"},
{"optimizer", "lr_scale", "none", KEY_CHOICE, AT(lr_scale), // enum lr_scale
 .words = WORDS("none", "sqrt", "linear"),
 .help = "how lr and min_lr grow with the global batch divided by base_batch"},
{"optimizer", "base_batch", "0", KEY_INT, AT(base_batch), 1, 1 << 30,
 "not known", .unit = "sequences",
 .help = "with lr_scale=: the global batch for which lr is right"},
{"optimizer", "warmup", "50", KEY_INT, AT(warmup), 0, 1e9,
 .unit = "steps",
 .help = "steps in which the learning rate rises linearly to lr"},
{"optimizer", "schedule", "cosine", KEY_CHOICE, AT(schedule), // schedule_kind
 .words = WORDS("constant", "cosine", "linear"),
 .help = "how the learning rate falls from lr to min_lr"},
{"optimizer", "beta1", "0.9", KEY_NUMBER, AT(beta1), 0, 0.999999,
 .help = "adamw, lamb: decay of the mean gradient"},
{"optimizer", "beta2", "0.95", KEY_NUMBER, AT(beta2), 0, 0.999999,
 .help = "adamw, lamb: decay of the mean squared gradient"},
{"optimizer", "eps", "1e-8", KEY_NUMBER, AT(eps), 1e-16, 1,
 .help = "adamw, lamb: added to the root of the mean squared gradient"},
{"optimizer", "weight_decay", "0.1", KEY_NUMBER, AT(weight_decay), 0, 10,
 .unit = "per step",
 .help = "decay of the matrices; multiplied by the learning rate"},
{"optimizer", "momentum", "0.9", KEY_NUMBER, AT(momentum), 0, 0.999999,
 .help = "sgd, lars: decay of the velocity; with squeeze=demo, of each "
         "worker's own"},
{"optimizer", "clip", "1", KEY_NUMBER, AT(clip), 1e-9, 1e9, "none",
 .unit = "norm",
 .help = "largest norm of the whole gradient; a longer one is scaled down"},
{"optimizer", "loss_scale", "0", KEY_NUMBER, AT(loss_scale), 1, 1 << 24,
 "dynamic", .unit = "factor",
 .help = "factor of the loss, so that small fp16 gradients are not lost"},

{"output", "out", "", KEY_TEXT, AT(out), .local = true, .once = true,
 .unit = "path",
 .help = "folder for run.json, steps.csv, summary.json and checkpoints"},
{"output", "log", "10", KEY_INT, AT(log), 1, 1e9, "never", .local = true,
 .unit = "steps",
 .help = "print a line every N steps"},
{"output", "eval", "100", KEY_INT, AT(eval), 1, 1e9, "never",
 .unit = "steps",
 .help = "compute the validation loss every N steps"},
{"output", "eval_batches", "20", KEY_INT, AT(eval_batches), 1, 1e9, "all",
 .unit = "batches",
 .help = "batches that each worker evaluates in a validation; losses of "
         "different numbers of sequences cannot be compared"},
{"output", "save", "0", KEY_INT, AT(save), 1, 1e9, "never",
 .unit = "steps",
 .help = "write a checkpoint every N steps, and one at the end"},
{"output", "save_async", "0", KEY_INT, AT(save_async), 0, 1,
 .help = "1: write checkpoints from a copy in worker 0's memory while steps "
         "go on, except at the end"},
{"output", "keep", "2", KEY_INT, AT(keep), 1, 1e9, "all",
 .unit = "checkpoints",
 .help = "how many checkpoints to keep, the newest ones"},
{"output", "verify", "0", KEY_INT, AT(verify), 1, 1e9, "never",
 .unit = "steps",
 .help = "check every N steps that all replicas are bit-identical, and that "
         "16-bit copies of parameters are what these round to; not with "
         "elastic=1, nor with consistency=ssp or asp"},
{"output", "resume", "", KEY_TEXT, AT(resume), .local = true, .once = true,
 .unit = "path",
 .help = "go on from a checkpoint: the folder of a run or of a checkpoint, "
         "with that run's settings where no others are given; auto: the "
         "newest checkpoint in out, if there is one"},
{"output", "trace", "on", KEY_CHOICE, AT(trace), // enum trace
 .words = WORDS("off", "on", "hta"), .local = true,
 .help = "record in trace.json what each thread did and when; hta: also in "
         "the format of Holistic Trace Analysis"},
{"output", "samples", "10", KEY_NUMBER, AT(samples), 0.1, 1000, "never",
 .local = true, .unit = "per second",
 .help = "samples of utilisation in util.csv"},
{"output", "tensorboard", "0", KEY_INT, AT(tensorboard), 0, 1, .local = true,
 .help = "1: write event files for TensorBoard, too"},
{"output", "profile", "", KEY_PARTS, AT(profile), PARTS(profile), .local = true,
 .unit = "FROM:COUNT",
 .help = "FROM:COUNT, with device=cuda: call cudaProfilerStart before step "
         "FROM and cudaProfilerStop COUNT steps later, with the GPU idle at "
         "both"},

{"output", "kernels", "0", KEY_INT, AT(kernels), 0, 1, .local = true,
 .help = "1, with device=cuda: record each kernel and copy of the GPU in "
         "trace.json, with CUPTI, which slows the run by some percent"},

{"cluster", "sync", NULL, KEY_WORD, AT(sync), .words = backend_names,
 .help = "how workers agree on the next parameters; listed below"},
{"cluster", "workers", "1", KEY_INT, AT(workers), 1, 4096,
 .unit = "processes",
 .help = "processes that lockstep starts"},
{"cluster", "mesh", "", KEY_PARTS, AT(mesh), PARTS(mesh),
 .unit = "dpN,ppN,tpN,cpN,upN",
 .help = "ranks on a grid, as in dp2,tp2: dpN for N replicas with data of "
         "their own, ppN for N stages of layers, tpN for N slices of tensors, "
         "cpN for N workers that divide every sequence, cpN,upM for N groups "
         "of M workers that do; "
         "the last word's coordinate changes fastest from rank to rank; sets "
         "workers; errors name a rank's coordinates; each host has a block of "
         "ranks, so neighbours in the last word share a host"},
{"cluster", "pipeline", "1f1b", KEY_CHOICE, AT(pipeline), // pipeline_kind
 .words = WORDS("naive", "gpipe", "1f1b"),
 .help = "mesh=ppN: the order in which a stage computes the accum= "
         "micro-batches"},
{"cluster", "chunks", "1", KEY_INT, AT(chunks), 1, 16, .unit = "a stage",
 .help = "1f1b: parts of the model on each stage; above 1: interleaved"},
{"cluster", "ahead", "0", KEY_INT, AT(ahead), 0, 64, .unit = "forwards",
 .help = "1f1b: additional forwards before a stage's first backward, for each "
         "hop to the last stage; helps on slow links"},
{"cluster", "stages", "", KEY_PARTS, AT(stages), PARTS(stages), .unit = "N,N..",
 .help = "layers of each stage, as in 7,5; without it as even as possible"},
{"cluster", "tp_sequence", "0", KEY_INT, AT(tp_sequence), 0, 2,
 .help = "mesh=tpN, 1: between the products of a layer a slice has some of "
         "the tokens only (Megatron's sequence parallelism): less memory; "
         "10/8 of the bytes between slices in fp32, 7/8 in bf16 and fp16; "
         "2: the same, but a layer keeps the inputs of two products of all "
         "tokens: 8/8 and 6/8 of the bytes, more memory"},
{"cluster", "tp_wire", "fp32", KEY_CHOICE, AT(tp_wire), .words = WIRE_FORMATS,
 .help = "mesh=tpN: number format of the sums between slices while they "
         "travel over TCP"},
{"cluster", "attention_over", "gather", KEY_CHOICE, AT(attention_over),
 .words = WORDS("gather", "ring", "heads"),
 .help = "mesh=cpN: how a worker gets the keys and values of other workers' "
         "tokens; gather: all at once (all-gather, as Llama 3 does); ring: one "
         "worker's at a time, while it computes (ring attention): less memory, "
         "the same bytes and bits; heads: none, since an all-to-all gives each "
         "worker all tokens of some heads (Ulysses): fewer bytes; with "
         "mesh=cpN,upM groups of M do so, and get each other's keys by gather "
         "or ring (USP)"},
{"cluster", "device", "cpu", KEY_WORD, AT(device),
 .words = WORDS("cpu", "cuda"),
 .help = "where a worker computes"},
// A file of hosts has ssh start programs there and gives them the job's secret,
// so only the user may name it: no run.json can (once).
{"cluster", "hosts", "", KEY_TEXT, AT(hosts), .local = true, .once = true,
 .unit = "path",
 .help = "an mpirun hostfile (NAME slots=N a line): spread the job over "
         "these hosts, through ssh or LOCKSTEP_RSH"},
{"cluster", "curve", "", KEY_TEXT, AT(curve), .local = true, .once = true,
 .unit = "path",
 .help = "sps, dps: folder of CURVE keys (made by lockstep keys): encrypt "
         "and authenticate"},
{"cluster", "timeout", "60", KEY_NUMBER, AT(timeout), 0.05, 86400,
 .local = true, .unit = "s",
 .help = "longest wait for another process"},
{"cluster", "restarts", "0", KEY_INT, AT(restarts), 0, 1000, .local = true,
 .unit = "times",
 .help = "how often lockstep starts a failed job again, from its newest "
         "checkpoint; with elastic=1 the failed worker alone"},
{"cluster", "straggler", "", KEY_PARTS, AT(straggler), .local = true,
 PARTS(straggler), .unit = "RANK:FACTOR",
 .help = "RANK:FACTOR slows one worker down on purpose"},
{"cluster", "pace", "", KEY_PARTS, AT(pace), PARTS(pace), .unit = "ms,ms",
 .help = "F,B: for each micro-batch and chunk, sleep F ms as forward and B ms "
         "as backward instead of computing; messages travel as in training"},
{"cluster", "net", "", KEY_WORD, AT(net), .local = true,
 .unit = "RATE[,hosts=N]",
 .help = "RATE[,hosts=N], as in 1gbit: each worker and server on an emulated "
         "host behind links of that rate; needs root; ?RATE: without root go "
         "on without such links; unshaped: no such links, as without net="},

{"backend", "wire", "fp32", KEY_CHOICE, SET(wire), .words = WIRE_FORMATS,
 .help = "number format of gradients while they travel"},
{"backend", "overlap", "1", KEY_INT, SET(overlap), 0, 1,
 .help = "1: send a bucket while backward still computes; 0: send all "
         "buckets after backward"},
{"backend", "staging", "auto", KEY_CHOICE, SET(staging),
 .words = WORDS("auto", "always"),
 .help = "copying of vectors to a host buffer; auto: from a GPU where needed; "
         "always: on the CPU, too, for tests"},
{"backend", "bucket", "size", KEY_CHOICE, SET(bucket),
 .words = WORDS("size", "block"),
 .help = "where a bucket ends; size: after bucket_mb=; block: where a block "
         "of the model ends"},
{"backend", "bucket_mb", "0", KEY_NUMBER, SET(bucket_mb), 0.001, 4096,
 "1/40 of the gradients, 1 to 25 MiB; in a ring never below 0.25 MiB a worker",
 .unit = "MiB",
 .help = "size of a bucket: gradients that travel together; if there are "
         "several, the one that backward fills first has at most 1 MiB"},
// The default is small. A server can send its first answer only after the first
// slice of every worker, and its last answer only after their last slice. So in
// each round each direction of a slow link is idle for the time of one slice.
// With much smaller slices, the additional messages cost more than this saves.
{"backend", "slice_kb", "256", KEY_INT, SET(slice_kb), 1, 1 << 20,
 .unit = "KiB",
 .help = "size of the slices of a vector, which travel one after the other"},
{"backend", "servers", "", KEY_PARTS, SET(servers), .local = true,
 PARTS(servers), .unit = "N|tcp://HOST:PORT,..",
 .help = "how many servers to start, or their endpoints: tcp://a:p,.."},
{"backend", "server_threads", "1", KEY_INT, SET(server_threads), 1, 1024,
 .local = true, .unit = "threads",
 .help = "threads of a server that add and update"},
{"backend", "consistency", "bsp", KEY_PARTS, SET(consistency),
 PARTS(consistency), .unit = "bsp|ssp:K|asp",
 .help = "bsp: all workers take each step together; ssp:K: no worker is more "
         "than K steps ahead; asp: no bound"},
{"backend", "backup", "0", KEY_INT, SET(backup), 0, 4095,
 .unit = "workers",
 .help = "how many late workers a step leaves out"},
{"backend", "update", "auto", KEY_CHOICE, SET(update), // enum updater
 .words = WORDS("auto", "server", "worker"),
 .help = "where parameters are updated; auto: on workers if the wire has 16 "
         "bits, else on servers"},
{"backend", "elastic", "0", KEY_INT, SET(elastic), 0, 1,
 .help = "1: go on without a worker that died"},
{"backend", "priority", "1", KEY_INT, SET(priority), 0, 1,
 .help = "1: send first-layer parameters first"},
{"backend", "algorithm", "auto", KEY_CHOICE, SET(algorithm),
 .words = WORDS(ALGORITHM_WORDS),
 .help = "all-reduce algorithm of Open MPI; auto: ring; library: Open MPI's "
         "own choice"},
{"backend", "ctas", "0", KEY_INT, SET(ctas), 1, 64, "NCCL's own choice",
 .unit = "thread blocks",
 .help = "with NCCL: how many thread blocks a collective may use; products in "
         "backward leave as many multiprocessors free"},
{"backend", "shard", "1", KEY_INT, SET(shard), 1, 3,
 .help = "what each worker holds only a shard of; 1: optimiser state; 2: "
         "gradients, too; 3: parameters, too"},
{"backend", "offload", "none", KEY_CHOICE, SET(offload),
 .words = WORDS("none", "disk"),
 .help = "disk: a worker's optimiser state, and with shard=3 its "
         "parameters, are in files in out=, read and written in every step: "
         "less memory, the same bits (docs/offload.md)"},
{"backend", "every", "10", KEY_INT, SET(every), 1, 1e9, .unit = "steps",
 .help = "exchange every N steps; save= and verify= must be multiples of it"},
{"backend", "outer_lr", "1", KEY_NUMBER, SET(outer_lr), 1e-6, 100,
 .help = "length of the outer step, from the last common parameters towards "
         "the mean of all workers'; 1: to the mean; DiLoCo: 0.7"},
{"backend", "outer_momentum", "0", KEY_NUMBER, SET(outer_momentum), 0,
 0.999999,
 .help = "Nesterov's momentum of the outer step; DiLoCo: 0.9"},
{"backend", "squeeze", "none", KEY_CHOICE, SET(squeeze),
 .words = squeeze_words,
 .help = "compress gradients; topk: send the largest; int8: round at random; "
         "sign: send one bit of each; power: matrices of low rank; demo: the "
         "momentum's largest coefficients, with sgd (docs/squeeze.md)"},
{"backend", "density", "0.01", KEY_NUMBER, SET(density), 1e-6, 1,
 .unit = "share",
 .help = "topk, demo: share of the gradients, or of coefficients, that a "
         "worker sends"},
{"backend", "scope", "bucket", KEY_CHOICE, SET(scope),
 .words = WORDS("bucket", "tensor", "model"),
 .help = "topk, sign: what is compressed as one vector; model: only after "
         "backward"},
{"backend", "levels", "127", KEY_INT, SET(levels), 1, 127,
 .help = "int8: to how many sizes above 0 gradients are rounded"},
{"backend", "momentum_correction", "0", KEY_INT, SET(momentum_correction), 0, 1,
 .help = "topk, 1: each worker adds momentum= to what it sends, not the "
         "optimiser to the sum (DGC)"},
{"backend", "squeeze_rank", "4", KEY_INT, SET(squeeze_rank), 1, 1024,
 .help = "power: rank of the matrices that stand for a gradient matrix"},
{"backend", "feedback", "1", KEY_INT, SET(feedback), 0, 1,
 .help = "with squeeze=, 1: what a worker has left out is added to its next "
         "gradient; 0: it is lost"},
{"backend", "squeeze_after", "0", KEY_INT, SET(squeeze_after), 0, 1e9,
 .unit = "steps",
 .help = "the first N steps send gradients whole"},
{"backend", "freeze", "0", KEY_INT, SET(freeze), 0, 1e9, .unit = "steps",
 .help = "sign: after N steps of AdamW its second moment stays, and workers "
         "compress the first (1-bit Adam); 0: never"},
{"backend", "transport", "auto", KEY_CHOICE, SET(transport),
 .words = WORDS("auto", "tcp", "shm", "zmq", "mpi", "library"),
 .help = "between workers: tcp or shm (auto: shm on one host), or library "
         "(zero, outer: Open MPI's collectives); to servers: zmq or mpi (auto: "
         "zmq)"},
{"backend", "iface", "", KEY_WORD, SET(iface), .local = true,
 .help = "network interface to listen on; without it loopback"},
// The file holds code that the workers run. So only the user who starts a run
// may name it: a resumed run does not take it from the earlier run (once).
{"backend", "lab", "", KEY_TEXT, SET(lab), .once = true, .unit = "path",
 .help = "the student's compiled file; labs/grade 4 --train makes it"},
{"backend", "inject", "", KEY_PARTS, SET(inject), .local = true, .once = true,
 .read = fault_read, .show = fault_show, .unit = "KIND:STEP[:MS][@RANK]",
 .help = "a fault for tests: delay:STEP:MS, fail:STEP, kill:STEP, nan:STEP or "
         "inf:STEP; @RANK behind it names the rank that it hits, else 0"},
{"backend", "own_norm", "0", KEY_INT, SET(own_norm), 0, 1,
 .help = "1: record the norm of each worker's own gradient, for the gradient "
         "noise scale"},

{"mistakes", "mistake", "none", KEY_PARTS, SET(mistake), PARTS(mistake),
 .unit = "none|two_updates|local_clip|same_seed|own_steps:R:N",
 .help = "WRONG ON PURPOSE, to see the effect: two_updates of a step with one "
         "gradient; local_clip: before the sum; same_seed: the same batches "
         "for all; own_steps:RANK:STEPS, fewer than the others take"},

// Words of a worker that was started without lockstep. They are no settings of
// a run: neither an INI file nor run.json has them.
{"by hand", "rank", "-1", KEY_INT, AT(rank), -1, 4095, .local = true,
 .once = true,
 .help = "rank of a worker started by hand; -1: from the launcher"},
{"by hand", "world", "0", KEY_INT, AT(world), 1, 4096, "launcher",
 .local = true, .once = true, .unit = "workers",
 .help = "number of workers, for a worker started by hand"},
{"by hand", "rendezvous", "", KEY_TEXT, AT(rendezvous),
 .check = check_endpoint, .local = true, .once = true, .unit = "endpoint",
 .help = "endpoint of the rendezvous server, tcp://HOST:PORT; "
         "ps_server 0 or rank 0 listens there", .was = "hub"},
};
// clang-format on

const struct key_table run_keys = {
    .rows = rows,
    .n = sizeof rows / sizeof *rows,
    .all = "lockstep train --help",
};
