"""The configurations of compare_memory_with_deepspeed.py: what is trained, and with which DeepSpeed JSON."""

GPT2 = {"model_type": "gpt2", "vocab_size": 16384, "n_positions": 128, "n_embd": 256, "n_layer": 4, "n_head": 4,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0}
LLAMA = {"model_type": "llama", "vocab_size": 16000, "hidden_size": 256, "intermediate_size": 688,
         "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
         "max_position_embeddings": 128, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}
MODELS = {"gpt2": GPT2, "llama": LLAMA, "llama-tied": {**LLAMA, "tie_word_embeddings": True}}

PRECISIONS = {"fp32": {}, "bf16": {"bf16": {"enabled": True}},
              "fp16": {"fp16": {"enabled": True, "initial_scale_power": 4}}}
ADAM = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.01}}}
BUCKET = 1_000_000  # elements: several buckets in a model of 7 M, one tensor does not fit
SHORT = {"sequence": 32, "micro_batch": 1}  # the peak is where gradients are reduced, or in the update


def case(name, stage, precision="bf16", zero=None, root=None, **other):
    ds_config = {"train_micro_batch_size_per_gpu": other.pop("micro_batch", 2),
                 "gradient_accumulation_steps": other.pop("accumulation", 1),
                 "zero_optimization": {"stage": stage, "reduce_bucket_size": BUCKET, **(zero or {})},
                 **PRECISIONS[precision], **(root or {})}
    return {"name": f"z{stage} {precision} {name}".strip(), "model": other.pop("model", "gpt2"),
            "sequence_length": other.pop("sequence", 128), "attention": other.pop("attention", "sdpa"),
            "keep_logits": other.pop("keep_logits", False), "ds_config": ds_config}


def cases():
    rows = [case("", stage, precision) for stage in range(4) for precision in ("fp32", "bf16")]
    rows += [case("short", stage, precision, **SHORT) for stage in range(4) for precision in PRECISIONS]
    rows += [case("accumulation", stage, precision, accumulation=2)
             for stage in range(4) for precision in ("fp32", "bf16")]
    rows += [case("accumulation short", stage, precision, accumulation=3, **SHORT)
             for stage in (1, 2, 3) for precision in ("fp32", "bf16")]
    rows += [case("overlap", stage, zero={"overlap_comm": True}, **SHORT) for stage in (1, 2)]
    rows += [case("no overlap", 3, zero={"overlap_comm": False}, **SHORT)]
    rows += [case("lists", stage, precision, zero={"contiguous_gradients": False}, **SHORT)
             for stage in (1, 2, 3) for precision in ("fp32", "bf16")]
    rows += [case("overlapping lists", 2, zero={"contiguous_gradients": False, "overlap_comm": True}, **SHORT)]
    rows += [case("one bucket", stage, zero={"reduce_bucket_size": 8_000_000}, **SHORT) for stage in (1, 2, 3)]
    rows += [case("small buckets", stage, zero={"reduce_bucket_size": 100_000}, **SHORT) for stage in (1, 2, 3)]
    rows += [case("no reduce-scatter", stage, zero={"reduce_scatter": False}, **SHORT) for stage in (1, 2, 3)]
    rows += [case("reduce to owners", 2, zero={"use_multi_rank_bucket_allreduce": False}, **SHORT)]
    rows += [case("no clipping", stage, "fp32", root={"gradient_clipping": 0.0}, **SHORT) for stage in range(4)]
    rows += [case("no overflow check", 2, root={"bf16": {"enabled": True, "check_grad_overflow": False}}, **SHORT)]
    rows += [case("Adam", stage, root=ADAM, **SHORT) for stage in range(4)]
    rows += [case("Adam", 0, "fp16", root=ADAM), case("Adam", 2, "fp32", root=ADAM)]
    rows += [case("eager", stage, precision, attention="eager")
             for stage, precision in ((0, "fp32"), (2, "bf16"), (3, "bf16"))]
    rows += [case("logits kept", stage, precision, keep_logits=True)
             for stage, precision in ((1, "fp32"), (2, "bf16"), (3, "bf16"))]
    rows += [case("untied", stage, precision, model="llama")
             for stage in range(4) for precision in ("fp32", "bf16")]
    rows += [case("tied", stage, precision, model="llama-tied")
             for stage in range(4) for precision in ("fp32", "bf16")]
    rows += [case("tied short", stage, "bf16", model="llama-tied", **SHORT) for stage in range(4)]
    rows += [case("untied short", stage, "bf16", model="llama", **SHORT) for stage in range(4)]
    rows += [case("no prefetch", 3, zero={"stage3_prefetch_bucket_size": 0}, **SHORT),
             case("prefetch", 3, zero={"stage3_prefetch_bucket_size": 1_000_000,
                                       "stage3_param_persistence_threshold": 0}, **SHORT),
             case("no reuse", 3, "fp32", zero={"stage3_max_reuse_distance": 0, "stage3_max_live_parameters": 0,
                                               "stage3_param_persistence_threshold": 0}, **SHORT),
             case("sub-groups", 3, zero={"sub_group_size": 1_000_000}, **SHORT),
             case("persistence", 3, zero={"stage3_param_persistence_threshold": 1_000_000}, **SHORT)]
    sums = {"data_types": {"grad_accum_dtype": "fp32"}}
    rows += [case("sums in fp32", stage, precision, root=sums, accumulation=2, **SHORT)
             for stage, precision in ((1, "bf16"), (3, "bf16"), (2, "bf16"))]
    rows += [case(f"sums in fp32 {name}", 2, zero=zero, root=sums, accumulation=2, **SHORT)
             for name, zero in (("overlap", {"overlap_comm": True}), ("lists", {"contiguous_gradients": False}),
                                ("small buckets", {"reduce_bucket_size": 100_000}),
                                ("one bucket", {"reduce_bucket_size": 8_000_000}))]
    rows += [case("sums in fp32 no reduce-scatter", 2, zero={"reduce_scatter": False}, root=sums, **SHORT),
             case("sums in fp32 reduce to owners", 2, zero={"use_multi_rank_bucket_allreduce": False}, root=sums,
                  **SHORT),
             case("sums and messages in fp32", 2, zero={"reduce_bucket_size": 8_000_000},
                  root={**sums, "communication_data_type": "fp32"}, **SHORT)]
    rows += [case("messages in fp32", stage, root={"communication_data_type": "fp32"}, **SHORT)
             for stage in range(4)]
    return rows
