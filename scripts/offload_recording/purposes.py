"""What a tensor, a copy, a wait, a read or a host pass is for, told from the statement of DeepSpeed that makes it.

A rule is a file of DeepSpeed, a function in it, a part of the statement ("" is any) and the name. The statement is what
Python's grammar calls one, however many lines it takes, so that the rules hold for releases that only moved it.
"""
import ast
import functools
import pathlib
import sys

OTHER = "other"
UNTOUCHED = "untouched"  # nothing is ever read or written there, so that the system has no memory for it
NOT_SITES = ("/deepspeed/comm/", "/deepspeed/accelerator/", "/deepspeed/utils/nvtx")  # they act for who calls them

ALLOCATIONS = [
    # stages 1 and 2
    ("stage_1_and_2", "flatten_dense_tensors_aligned", "", "parameters"),
    ("stage_1_and_2", "__init__", "temp_buffer_bit16", "update staging"),
    ("stage_1_and_2", "__init__", "weights_partition", "master"),
    ("stage_1_and_2", "__init__", "temp_grad_buffer_for_cpu_offload", "unused gradient buffer"),
    ("stage_1_and_2", "__init__", "temp_grad_buffer_for_gpu_offload", "gradient staging"),
    ("stage_1_and_2", "initialize_optimizer_states", "single_grad_partition", "fp32 gradients"),
    ("stage_1_and_2", "buffer_to_accumulate_to_in_cpu", "", "gradient sums"),
    ("stage_1_and_2", "setup_buckets", "", "ipg bucket"),
    ("stage_1_and_2", "_build_compact_grad_partition_buffer", "", "partition sums"),
    ("stage_1_and_2", "_fill_param_grad_accum_attribute", "", "accumulated gradients"),
    ("stage_1_and_2", "set_norm_for_param_grad_in_gpu", "", "norm"),
    ("stage_1_and_2", "copy_grads_in_partition", "norm", "norm"),
    ("stage_1_and_2", "copy_grads_in_partition", "", "fp32 gradient copy"),
    ("stage_1_and_2", "async_inplace_copy_grad_to_fp32_buffer_from_gpu", "", "fp32 gradient copy"),
    ("stage_1_and_2", "complete_grad_norm_calculation_for_cpu_offload", "", "norm"),
    ("stage_1_and_2", "has_overflow", "", "overflow"),
    ("stage_1_and_2", "step", "_global_grad_norm", "norm"),
    ("stage_1_and_2", "unscale_and_clip_grads", "", "norm"),
    ("stage_1_and_2", "allreduce_bucket", "", "communication"),
    ("stage_1_and_2", "reduce_independent_p_g_buckets_and_remove_grads", "clone", "gradient"),
    ("stage_1_and_2", "_add_to_grad_partition_buffer", "", "fp32 gradient copy"),
    # stage 3
    ("partition_parameters", "_partition_param", "", "first shards"),
    ("partition_parameters", "_convert_to_deepspeed_param", "", "model"),
    ("partition_parameters", "", "", "gathered parameters"),
    ("utils", "defragment", "cpu_buffer.to", "parameters"),
    ("utils", "defragment", "", "defragmentation"),
    ("stage3", "__init__", "inf_or_nan_tracker", "overflow"),
    ("stage3", "_create_param_groups_fp16_flat_cpu_memory", "", "parameters"),
    ("stage3", "_create_fp32_partitions", "", "master"),
    ("stage3", "initialize_optimizer_states", "subgroup_gradient_buffer", "fp32 gradients"),
    ("stage3", "initialize_optimizer_states", "gradient_buffer", "scratch gradients"),
    ("stage3", "", "bucket.buffer", "ipg bucket"),
    ("stage3", "", "grad_partitions_flat_buffer", "gradient shards"),
    ("stage3", "partition_grads", "", "gradient shards on the device"),
    ("stage3", "_offload_grad_partition_at_boundary", "", "fp32 gradient copy"),
    ("stage3", "_constant_buffered_norm2", "", "norm"),
    ("stage3", "complete_grad_norm_calculation_for_cpu_offload", "", "norm"),
    ("stage3", "get_grad_norm_direct", "", "norm"),
    ("stage3", "_prepare_fp32_grad_for_sub_group", "", "fp32 gradients"),
    ("stage3", "has_overflow", "", "overflow"),
    ("stage3", "step", "_global_grad_norm", "norm"),
    ("stage3", "unscale_and_clip_grads", "", "norm"),
    ("stage3", "step_with_gradscaler", "", "moments"),
    ("coalesced_collectives", "", "", "communication"),
    # the drive
    ("utils", "", "new_cpu_locked_tensor", "optimizer swap buffers"),
    ("partitioned_param_swapper", "reserve_partitioned_swap_space", "", "write-back buffer"),
    ("partitioned_param_swapper", "_configure_aio", "torch.empty", UNTOUCHED),  # an example of the type for the next
    ("partitioned_param_swapper", "_configure_aio", "", "parameter swap buffers"),
    ("partitioned_param_swapper", "", "", "swapping"),
    ("partitioned_optimizer_swapper", "", "", "swapping"),
    ("pipelined_optimizer_swapper", "", "", "swapping"),
    ("optimizer_utils", "", "", "swapping"),
    ("async_swapper", "", "", "swapping"),
    # all stages
    ("utils", "has_inf_or_nan", "", "overflow"),
    ("utils", "is_invalid_grad_norm", "", "norm"),
    ("utils", "combine_grad_norm_groups", "", "norm"),
    ("engine", "forward", "self.module", "activations"),
    ("linear", "forward", "", "activations"),
    ("engine", "backward", "", "loss"),
    ("loss_scaler", "", "", "loss"),
    ("utils", "mask_nan_or_inf_with_val_inplace", "", "norm"),
    # optimizers
    ("cpu_adam", "step", "", "moments"),
    ("cpu_lion", "step", "", "moments"),
    ("cpu_adagrad", "step", "", "moments"),
]

COPIES = [
    ("stage_1_and_2", "accumulate_gradients", "", "gradient sum"),
    ("stage_1_and_2", "copy_gradients_to_cpu", "", "gradient sum"),
    ("stage_1_and_2", "async_inplace_copy_grad_to_fp32_buffer_from_gpu", "", "gradient"),
    ("stage_1_and_2", "copy_grads_in_partition", "", "gradient"),
    ("stage_1_and_2", "has_overflow", "", "overflow"),
    ("stage_1_and_2", "complete_grad_norm_calculation_for_cpu_offload", "", "norm"),
    ("stage_1_and_2", "step", "bit16_partitions", "update"),
    ("stage3", "partition_grads", "", "gradient shard"),
    ("stage3", "_offload_grad_partition_at_boundary", "", "gradient"),
    ("stage3", "complete_grad_norm_calculation_for_cpu_offload", "", "norm"),
    ("stage3", "get_grad_norm_direct", "", "norm"),
    ("stage3", "_create_fp32_partitions", "", "master"),
    ("stage3", "has_overflow", "", "overflow"),
    ("stage3", "_reassign_or_swap_out_partitioned_parameters", "", "update"),
    ("utils", "mask_nan_or_inf_with_val_inplace", "", "norm"),
    ("async_swapper", "_swap_out_tensor", "", "gradient"),
    ("optimizer_utils", "read_unswapped_gradients", "", "kept gradient"),
    ("optimizer_utils", "_swap_out_unpinned_tensors", "", "master"),
    ("stage3", "_swap_in_sub_group_to_flat_buffer", "", "master"),
    ("stage3", "_partitioned_params_swap_out", "", "update"),
    ("partitioned_param_swapper", "swap_into_buffer", "", "parameter"),
    ("partition_parameters", "", "ds_tensor", "parameter"),
]

WAITS = [
    ("stage_1_and_2", "_wait_for_offload_copies", "", "offload copies"),
    ("stage_1_and_2", "independent_gradient_partition_epilogue", "", "reduction"),
    ("stage3", "independent_gradient_partition_epilogue", "", "reduction"),
    ("stage3", "_DeepSpeedZeroOptimizer_Stage3__add_grad_to_ipg_bucket", "", "reduction"),
    ("partitioned_param_coordinator", "", "", "parameters"),
    ("partition_parameters", "", "", "parameters"),
    ("timer", "", "", "timer"),
    ("async_swapper", "_wait_for_swap_complete", "", "drive gradient writes"),
    ("optimizer_utils", "_swap_out_unpinned_tensors", "", "drive new states"),
    ("optimizer_utils", "_swap_in_fp16_params", "", "drive parameter reads"),
    ("partitioned_optimizer_swapper", "_swap_in_parameter", "", "drive state reads"),
    ("partitioned_optimizer_swapper", "_swap_in_pinned_gradients", "", "drive gradient reads"),
    ("partitioned_optimizer_swapper", "_swap_out_optimizer_state", "", "drive state writes"),
    # The pipelined swapper waits for states and gradients together.
    ("pipelined_optimizer_swapper", "swap_in_optimizer_state", "", "drive state reads"),
    ("pipelined_optimizer_swapper", "_complete_swap_out", "", "drive state writes"),
    ("partitioned_param_swapper", "synchronize_reads", "", "drive parameter reads"),
    ("partitioned_param_swapper", "synchronize_writes", "", "drive parameter writes"),
    ("utils", "swap_out", "", "drive parameter writes"),
]

READS = [
    ("stage_1_and_2", "update_offload_overflow_tracker", "", "tensor overflow"),
    ("stage_1_and_2", "has_overflow", "", "overflow"),
    ("stage_1_and_2", "complete_grad_norm_calculation_for_cpu_offload", "param_norm", "tensor norm"),
    ("stage_1_and_2", "complete_grad_norm_calculation_for_cpu_offload", "", "group norm"),
    ("stage3", "complete_grad_norm_calculation_for_cpu_offload", "", "sub-group norm"),
    ("utils", "is_invalid_grad_norm", "", "global norm"),
    ("stage3", "has_overflow", "", "overflow"),
]

# None: numbers, one for each group of parameters, and no pass over what they are of.
HOST_PASSES = [
    ("utils", "combine_grad_norm_groups", "", None),
    ("utils", "is_invalid_grad_norm", "", None),
    ("stage_1_and_2", "unscale_and_clip_grads", "clip =", None),
    ("stage3", "unscale_and_clip_grads", "clip =", None),
    ("stage_1_and_2", "unscale_and_clip_grads", "", "unscale"),
    ("stage_1_and_2", "step", "bit16_partition_buffer", "cast"),
    ("stage3", "unscale_and_clip_grads", "", "unscale"),
    ("stage3", "_reassign_or_swap_out_partitioned_parameters", "", "cast"),
    ("stage3", "_partitioned_params_swap_out", "", "cast"),
    ("async_swapper", "_swap_out_tensor", "", "swap gradient"),
    ("optimizer_utils", "_swap_out_unpinned_tensors", "", "swap new state"),
    ("optimizer_utils", "read_unswapped_gradients", "", "swap gradient"),
    ("pipelined_optimizer_swapper", "_swap_out_optimizer_state", "", "swap new state"),
]

STREAMS = [
    ("stage_1_and_2", "__init__", "reduction_stream", "reduction"),
    ("stage3", "__init__", "reduce_and_partition_stream", "reduction"),
    ("parameter_offload", "__init__", "allgather_stream", "gather"),
]


@functools.cache
def statements_of(path):
    """The simple statements of a file and the heads of the compound ones, by their lines."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    lines, found = text.splitlines(), {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            last = node.body[0].lineno - 1 if getattr(node, "body", None) else node.end_lineno
            statement = " ".join(line.strip() for line in lines[node.lineno - 1:last])
            found.update({line: statement for line in range(node.lineno, last + 1)})
    return found


def sites():
    """File, function and statement of each frame of DeepSpeed's own that is being run, the innermost first."""
    frame = sys._getframe(1)
    while frame:
        path = frame.f_code.co_filename
        if "/deepspeed/" in path and not any(part in path for part in NOT_SITES):
            file = path.rsplit("/", 1)[1].removesuffix(".py")
            yield file, frame.f_code.co_name, statements_of(path).get(frame.f_lineno, "")
        frame = frame.f_back


def name_by(rules, otherwise=OTHER, depth=4):
    """The name that the first rule gives which holds for one of the innermost frames."""
    for _, site in zip(range(depth), sites()):
        for file, function, part, name in rules:
            if site[0] == file and function in ("", site[1]) and part in site[2]:
                return name
    return otherwise
