// terms.c - the rows of terms.h: values of a key first, then names of keys.
//
// The words are those of PyTorch, torchrun, Horovod, DeepSpeed, Megatron-LM,
// Apex, Hugging Face's Trainer and Accelerate, nanoGPT and wordplay.

#include "config/terms.h"

// clang-format off
static const struct term rows[] = {
    {"sync", "ddp", "sync=ring, or sync=allreduce"},
    {"sync", "horovod hvd gloo", "sync=ring"},
    {"sync", "mpi nccl mpi4py oneccl", "sync=allreduce"},
    {"sync", "fsdp fsdp2 fully_shard zero3", "sync=zero shard=3"},
    {"sync", "deepspeed zero2", "sync=zero shard=2"},
    {"sync", "zero1 distributed_optimizer ZeroRedundancyOptimizer",
     "sync=zero shard=1"},
    {"sync", "diloco localsgd fedavg", "sync=outer every=10"},
    {"sync", "dp nn.DataParallel", "sync=dataparallel"},
    {"sync", "ps pserver parameter_server ps-lite", "sync=sps, or sync=dps"},
    {"sync", "byteps", "sync=dps"},
    {"sync", "async hogwild asp", "sync=sps consistency=asp"},
    {"sync", "ssp", "sync=sps consistency=ssp:2"},
    {"sync", "elastic torchft", "sync=dps elastic=1"},
    {"sync", "gpipe pipeline pp", "sync=ring mesh=pp2 pipeline=gpipe"},
    {"sync", "pipedream 1f1b", "sync=ring mesh=pp2 pipeline=1f1b"},
    {"sync", "megatron tp tensor_parallel", "sync=ring mesh=tp2"},
    {"sync", "none single", "sync=local"},
    {"sync", "hsdp hybrid_shard", ""},
    {"sync", "sp sequence_parallel", "sync=ring mesh=tp2 tp_sequence=1"},
    {"sync", "cp context_parallel ulysses usp ring_attention", ""},
    {"sync", "ep moe expert_parallel", ""},
    {"sync", "powersgd topk signsgd 1bit onebit adasum", ""},
    {"sync", "rpc", ""},
    {"pipeline", "pipedream", "pipeline=1f1b"},
    {"pipeline", "interleaved", "pipeline=1f1b chunks=2"},
    {"pipeline", "zb zero_bubble dualpipe", ""},
    {"precision", "float32 float none O0", "precision=fp32"},
    {"precision", "bfloat16 amp autocast", "precision=bf16"},
    {"precision", "float16 half O1 O2 O3", "precision=fp16"},
    {"precision", "fp8 int8", ""},
    {"wire", "float32 float", "wire=fp32"},
    {"wire", "float16 half", "wire=fp16"},
    {"wire", "bfloat16", "wire=bf16"},
    {"wire", "fp8 int8 1bit topk powersgd", ""},
    {"device", "gpu", "device=cuda"},
    {"device", "mps xpu tpu rocm", ""},
    {"optimizer", "adam", "optimizer=adamw weight_decay=0"},
    {"optimizer", "muon adafactor sophia", ""},
    {"schedule", "wsd inverse_sqrt polynomial", ""},

    {"", "learning_rate", "lr="},
    {"", "backend strategy ddp_backend", "sync="},
    {"", "world_size nproc_per_node ngpus np num_processes", "workers="},
    {"", "nnodes hostfile num_machines", "hosts="},
    {"", "node_rank machine_rank", "rank="},
    {"", "master_addr master_port rdzv_endpoint", "rendezvous="},
    {"", "max_restarts", "restarts="},
    {"", "tensor_model_parallel_size pipeline_model_parallel_size "
         "data_parallel_size tp pp", "mesh="},
    {"", "num_layers_per_virtual_pipeline_stage virtual_stages", "chunks="},
    {"", "n_layer num_layers", "layers="},
    {"", "n_head num_attention_heads num_heads", "heads="},
    {"", "n_embd hidden_size d_model", "channels="},
    {"", "seq_len seq_length block_size sequence_length n_ctx", "context="},
    {"", "dtype torch_dtype mixed_precision opt_level fp16 bf16 amp",
     "precision="},
    {"", "communication_data_type compression", "wire="},
    {"", "batch_size micro_batch_size per_device_train_batch_size "
         "train_micro_batch_size_per_gpu", "batch="},
    {"", "global_batch_size train_batch_size", "global_batch="},
    {"", "gradient_accumulation_steps grad_accum gas backward_passes_per_step "
         "no_sync num_microbatches", "accum="},
    {"", "max_iters max_steps train_iters num_steps num_iters", "steps="},
    {"", "num_train_epochs num_epochs", "epochs="},
    {"", "warmup_iters warmup_steps lr_warmup_iters", "warmup="},
    {"", "lr_scheduler lr_scheduler_type decay_lr lr_decay_style", "schedule="},
    {"", "adam_beta1", "beta1="},
    {"", "adam_beta2", "beta2="},
    {"", "adam_eps adam_epsilon", "eps="},
    {"", "wd", "weight_decay="},
    {"", "max_grad_norm grad_clip clip_grad gradient_clipping", "clip="},
    {"", "zero_stage stage sharding_strategy reshard_after_forward", "shard="},
    {"", "activation_checkpointing gradient_checkpointing "
         "recompute_granularity", "recompute=1"},
    {"", "bucket_cap_mb reduce_bucket_size", "bucket_mb="},
    {"", "fusion_threshold", "fusion_mb="},
    {"", "inject_rank", "inject=kill:10@1"},
    {"", "overlap_comm overlap_grad_reduce", "overlap="},
    {"", "sync_every local_steps", "every="},
    {"", "eval_interval eval_steps", "eval="},
    {"", "eval_iters", "eval_batches="},
    {"", "log_interval logging_steps", "log="},
    {"", "save_interval save_steps save_every", "save="},
    {"", "save_total_limit", "keep="},
    {"", "out_dir output_dir save_dir", "out="},
    {"", "resume_from_checkpoint", "resume="},
    {"", "init_from pretrained", "init="},
    {"", "dataset data_path train_data", "data="},
    {"", "num_workers", ""},
    {"", "local_rank", ""},
    {"", "wandb wandb_log wandb_project report_to", ""},
    {"", "offload offload_optimizer offload_param cpu_offload", ""},
    {"", "compile torch_compile", ""},
    {"", "bias", ""},
    {"", "deepspeed_config ds_config", ""},
    {"", "sequence_parallel", "tp_sequence=1"},
    {"", "context_parallel_size expert_parallel_size cp ep", ""},
    {"", "autotune cycle_time", ""},
    {"", "find_unused_parameters join", ""},
};
// clang-format on

bool term_row(int i, struct term *row)
{
    if (i >= (int)(sizeof rows / sizeof *rows))
        return false;
    *row = rows[i];
    return true;
}
