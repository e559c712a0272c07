#include "kernels/cuda/attention/cudnn_frontend_graph.hpp"

#include <stdexcept>
#include <string>

// The frontend then finds cuDNN's functions in cudnn_dlhandle, and opens the CUDA run time by its
// bare name: loaded_cudnn.cpp has opened it by then.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB  // of plans in files
#include <cudnn_frontend.h>

#include "core/base/text.hpp"
#include "kernels/cuda/attention/plan_cache.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/base/handles.hpp"
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

/// Whether it failed for what was asked, not for what happened meanwhile. What cuDNN itself calls
/// unsupported comes as an error of its functions.
bool is_refusal(fe::error_code_t code, const std::string& message) {
  switch (code) {
    case fe::error_code_t::CUDA_API_FAILED:
    case fe::error_code_t::GRAPH_EXECUTION_FAILED:
    case fe::error_code_t::HANDLE_ERROR:
    case fe::error_code_t::INVALID_CUDA_DEVICE:
      return false;
    case fe::error_code_t::CUDNN_BACKEND_API_FAILED:
      return message.find("NOT_SUPPORTED") != std::string::npos ||
             message.find("BAD_PARAM") != std::string::npos;
    default:
      return true;
  }
}

// The frontend's error has no const functions.
void require(fe::error_t error) {
  if (error.is_good()) return;
  const std::string message = error.get_message();
  check_device_after(message);
  if (is_refusal(error.get_code(), message)) throw NoPlanError(message);
  throw CudaError(concat("cuDNN's attention: ", message));
}

/// f(), whose own exceptions say that a library or a function is not there.
template <class F>
void use_frontend(F f) {
  try {
    f();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    check_device_after(error.what());
    throw NoPlanError(error.what());
  }
}

void describe(fe::graph::Tensor_attributes& tensor, const FusedShape& shape, FusedTensor uid,
              const FusedHeads& heads) {
  tensor.set_uid(uid)
      .set_dim({shape.batch, heads.count, shape.sequence, shape.head_size})
      .set_stride({shape.sequence * heads.row_stride, heads.head_stride, heads.row_stride, 1});
}

/// The log-sum-exp of every row of scores, (batch, heads, sequence).
void describe_stats(fe::graph::Tensor_attributes& tensor, const FusedShape& shape) {
  tensor.set_uid(kStats)
      .set_dim({shape.batch, shape.q.count, shape.sequence, 1})
      .set_stride({shape.q.count * shape.sequence, shape.sequence, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

TensorHandle input(fe::graph::Graph& graph, const FusedShape& shape, FusedTensor uid,
                   const FusedHeads& heads) {
  fe::graph::Tensor_attributes tensor;
  describe(tensor, shape, uid, heads);
  return graph.tensor(tensor);
}

void output(const TensorHandle& tensor, const FusedShape& shape, FusedTensor uid,
            const FusedHeads& heads) {
  tensor->set_output(true);
  describe(*tensor, shape, uid, heads);
}

/// A number of 64 bits in device memory.
TensorHandle number(fe::graph::Graph& graph, FusedTensor uid) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_uid(uid)
                          .set_dim({1, 1, 1, 1})
                          .set_stride({1, 1, 1, 1})
                          .set_data_type(fe::DataType_t::INT64));
}

/// Of the band of keys that a query sees, the left bound keeps column + bound > row, the right one
/// column <= row + bound: a window and 0.
template <class Attributes>
Attributes options_of(fe::graph::Graph& graph, const FusedShape& shape, const char* name) {
  Attributes options;
  options.set_name(name);
  options.set_attn_scale(static_cast<float>(shape.scale));
  options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT);
  if (shape.causal) options.set_diagonal_band_right_bound(0);
  if (shape.window > 0) options.set_diagonal_band_left_bound(static_cast<int>(shape.window));
  if (shape.dropout > 0) {
    options.set_dropout(static_cast<float>(shape.dropout), number(graph, kSeed),
                        number(graph, kOffset));
  }
  return options;
}

void add_forward(fe::graph::Graph& graph, const FusedShape& shape) {
  auto options = options_of<fe::graph::SDPA_attributes>(graph, shape, "attention");
  options.set_generate_stats(true);
  const auto [out, stats] =
      graph.sdpa(input(graph, shape, kQ, shape.q), input(graph, shape, kK, shape.k),
                 input(graph, shape, kV, shape.v), options);
  output(out, shape, kOut, shape.out);
  stats->set_output(true);
  describe_stats(*stats, shape);
}

// Not the deterministic algorithm, which is slower: PyTorch runs it only after
// torch.use_deterministic_algorithms().
void add_backward(fe::graph::Graph& graph, const FusedShape& shape) {
  const auto options =
      options_of<fe::graph::SDPA_backward_attributes>(graph, shape, "attention_backward");
  fe::graph::Tensor_attributes stats;
  describe_stats(stats, shape);
  const auto [d_q, d_k, d_v] =
      graph.sdpa_backward(input(graph, shape, kQ, shape.q), input(graph, shape, kK, shape.k),
                          input(graph, shape, kV, shape.v), input(graph, shape, kOut, shape.out),
                          input(graph, shape, kDOut, shape.out), graph.tensor(stats), options);
  output(d_q, shape, kDQ, shape.d_q);
  output(d_k, shape, kDK, shape.d_k);
  output(d_v, shape, kDV, shape.d_v);
}

}  // namespace

// cuDNN has a run time of its own, so that its message is all that tells of its memory.
void check_device_after(std::string_view reason) {
  const cudaError_t error = cudaGetLastError();
  const bool is_full = error == cudaErrorMemoryAllocation || tells_of_no_memory(reason);
  if (!is_full) return check(error, "cuDNN's attention", __FILE__, __LINE__);
  constexpr Bytes kUnknown = 0;
  const DeviceSpace space = device_space();
  throw OutOfMemoryError(MemoryCategory::temporaries, kUnknown, space.total - space.free,
                         space.total);
}

FusedPlan::FusedPlan(cudnnHandle_t handle, const FusedShape& shape)
    : graph_(std::make_unique<Graph>()) {
  fe::cudnn_dlhandle = cudnn_library().handle;
  fe::graph::Graph& graph = graph_->graph;
  graph
      .set_io_data_type(shape.dtype == DType::fp16 ? fe::DataType_t::HALF
                                                   : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  if (shape.backward) {
    add_backward(graph, shape);
  } else {
    add_forward(graph, shape);
  }
  use_frontend([&] {
    require(graph.build(handle, {fe::HeurMode_t::A}));
    require(graph.get_workspace_size(workspace_));
  });
}

FusedPlan::~FusedPlan() = default;

void FusedPlan::run(cudnnHandle_t handle, std::unordered_map<std::int64_t, void*> tensors,
                    void* workspace) const {
  use_frontend([&] { require(graph_->graph.execute(handle, tensors, workspace)); });
}

}  // namespace dstune::cuda
