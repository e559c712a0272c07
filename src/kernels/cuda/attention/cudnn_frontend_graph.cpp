#include "kernels/cuda/attention/cudnn_frontend_graph.hpp"

#include <cmath>
#include <stdexcept>

// The frontend then finds cuDNN's functions in cudnn_dlhandle.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>

#include "kernels/cuda/libraries/cudnn.hpp"

namespace cudnn_frontend {

void* cudnn_dlhandle = nullptr;  // declared by the frontend, defined by who uses it

}  // namespace cudnn_frontend

namespace dstune::cuda {

namespace fe = cudnn_frontend;

struct FusedPlan::Graph {
  fe::graph::Graph graph;
};

namespace {

using TensorHandle = std::shared_ptr<fe::graph::Tensor_attributes>;

void require(fe::error_t error) {
  if (error.is_bad()) throw std::runtime_error(error.get_message());
}

/// A tensor whose heads lie side by side in rows of `stride` elements.
void describe(fe::graph::Tensor_attributes& tensor, const FusedShape& shape, FusedTensor uid,
              std::int64_t stride) {
  tensor.set_uid(uid)
      .set_dim({shape.batch, shape.heads, shape.sequence, shape.head_size})
      .set_stride({shape.sequence * stride, shape.head_size, stride, 1});
}

/// The log-sum-exp of every row of scores, (batch, heads, sequence).
void describe_stats(fe::graph::Tensor_attributes& tensor, const FusedShape& shape) {
  tensor.set_uid(kStats)
      .set_dim({shape.batch, shape.heads, shape.sequence, 1})
      .set_stride({shape.heads * shape.sequence, shape.sequence, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

TensorHandle input(fe::graph::Graph& graph, const FusedShape& shape, FusedTensor uid,
                   std::int64_t stride) {
  fe::graph::Tensor_attributes tensor;
  describe(tensor, shape, uid, stride);
  return graph.tensor(tensor);
}

void output(const TensorHandle& tensor, const FusedShape& shape, FusedTensor uid,
            std::int64_t stride) {
  tensor->set_output(true);
  describe(*tensor, shape, uid, stride);
}

/// Scaled and causal.
template <class Attributes>
Attributes options_of(const FusedShape& shape, const char* name) {
  Attributes options;
  options.set_name(name);
  options.set_attn_scale(static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_size))));
  options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT);
  options.set_diagonal_band_right_bound(0);
  return options;
}

void add_forward(fe::graph::Graph& graph, const FusedShape& shape) {
  auto options = options_of<fe::graph::SDPA_attributes>(shape, "attention");
  options.set_generate_stats(true);
  const auto [out, stats] = graph.sdpa(input(graph, shape, kQ, shape.qkv_stride),
                                       input(graph, shape, kK, shape.qkv_stride),
                                       input(graph, shape, kV, shape.qkv_stride), options);
  output(out, shape, kOut, shape.out_stride);
  stats->set_output(true);
  describe_stats(*stats, shape);
}

// The same call gives the same bits, as with our own kernels.
void add_backward(fe::graph::Graph& graph, const FusedShape& shape) {
  auto options = options_of<fe::graph::SDPA_backward_attributes>(shape, "attention_backward");
  options.set_deterministic_algorithm(true);
  fe::graph::Tensor_attributes stats;
  describe_stats(stats, shape);
  const auto [d_q, d_k, d_v] = graph.sdpa_backward(
      input(graph, shape, kQ, shape.qkv_stride), input(graph, shape, kK, shape.qkv_stride),
      input(graph, shape, kV, shape.qkv_stride), input(graph, shape, kOut, shape.out_stride),
      input(graph, shape, kDOut, shape.out_stride), graph.tensor(stats), options);
  output(d_q, shape, kDQ, shape.d_qkv_stride);
  output(d_k, shape, kDK, shape.d_qkv_stride);
  output(d_v, shape, kDV, shape.d_qkv_stride);
}

}  // namespace

FusedPlan::FusedPlan(cudnnHandle_t handle, const FusedShape& shape)
    : graph_(std::make_unique<Graph>()) {
  fe::cudnn_dlhandle = cudnn_library().handle;
  fe::graph::Graph& graph = graph_->graph;
  graph
      .set_io_data_type(shape.dtype == DType::fp16 ? fe::DataType_t::HALF
                                                   : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  if (shape.d_qkv_stride == 0) {
    add_forward(graph, shape);
  } else {
    add_backward(graph, shape);
  }
  require(graph.build(handle, {fe::HeurMode_t::A}));
  require(graph.get_workspace_size(workspace_));
}

FusedPlan::~FusedPlan() = default;

void FusedPlan::run(cudnnHandle_t handle, std::unordered_map<std::int64_t, void*> tensors,
                    void* workspace) const {
  require(graph_->graph.execute(handle, tensors, workspace));
}

}  // namespace dstune::cuda
