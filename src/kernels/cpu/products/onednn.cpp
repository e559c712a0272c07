#include "kernels/cpu/products/onednn.hpp"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <tuple>
#include <unordered_map>

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace dstune::cpu {

namespace {

using dnnl::memory;

constexpr std::size_t kMostKernels = 256;

/// Grows, never copies; where oneDNN's kernels like it to be.
class Workspace {
 public:
  void* at_least(std::size_t size) {
    constexpr std::size_t kAlignment = 64;
    if (size > size_) {
      clear();
      const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
      data_.reset(std::aligned_alloc(kAlignment, rounded));
      if (!data_) throw std::bad_alloc();
      size_ = rounded;
    }
    return data_.get();
  }
  void clear() {
    data_.reset();
    size_ = 0;
  }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }  // NOLINT(*-no-malloc)
  };
  std::unique_ptr<void, Free> data_;
  std::size_t size_ = 0;
};

struct Kernel {
  memory::desc a;
  memory::desc b;
  memory::desc c;
  memory::desc bias;
  memory::desc scratchpad;
  dnnl::matmul product;
};

memory::data_type type_of(DType dtype) {
  return dtype == DType::fp32 ? memory::data_type::f32 : memory::data_type::bf16;
}

/// op(matrix), without moving anything.
memory::desc described(const Matrix& matrix, Transpose transpose) {
  if (transpose == Transpose::no) {
    return {{matrix.rows, matrix.cols}, type_of(matrix.dtype), memory::dims{matrix.stride, 1}};
  }
  return {{matrix.cols, matrix.rows}, type_of(matrix.dtype), memory::dims{1, matrix.stride}};
}

memory::desc described_bias(const Gemm& op) {
  if (!op.bias) return {};
  return {{1, op.c.cols}, type_of(op.bias->dtype), memory::format_tag::ab};
}

dnnl::matmul::primitive_desc described_product(const Gemm& op, const dnnl::engine& engine) {
  const memory::desc a = described(op.a, op.transpose_a);
  const memory::desc b = described(op.b, op.transpose_b);
  const memory::desc c = described(op.c, Transpose::no);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (op.beta != 0) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  const memory::desc bias = described_bias(op);
#if DNNL_VERSION_MAJOR >= 3
  return op.bias ? dnnl::matmul::primitive_desc(engine, a, b, bias, c, attributes)
                 : dnnl::matmul::primitive_desc(engine, a, b, c, attributes);
#else
  const auto product = op.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  return {product, attributes, engine};
#endif
}

Kernel make_kernel(const Gemm& op, const dnnl::engine& engine) {
  const auto product = described_product(op, engine);
  return {product.src_desc(), product.weights_desc(),    product.dst_desc(),
          described_bias(op), product.scratchpad_desc(), dnnl::matmul(product)};
}

/// All that a kernel depends on.
auto key_of(const Gemm& op) {
  return std::tuple(op.transpose_a, op.transpose_b, op.a.rows, op.a.cols, op.a.stride, op.b.rows,
                    op.b.cols, op.b.stride, op.c.stride, op.c.dtype, op.beta != 0,
                    op.bias.has_value());
}

// OpenMP keeps the number for each thread of the program. A oneDNN that has other threads has no
// such function.
void set_threads(int threads) {
  static const auto set =
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(threads);
}

/// f(), whose faults become ours.
template <class F>
void translating(F&& f) {
  try {
    f();
  } catch (const dnnl::error& fault) {
    if (fault.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw Error(concat("oneDNN: ", fault.message));
  }
}

}  // namespace

struct Onednn::State {
  int threads;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<decltype(key_of(Gemm{})), Kernel> kernels = {};
  Workspace scratchpad = {};

  const Kernel& kernel_of(const Gemm& op) {
    const auto key = key_of(op);
    if (const auto found = kernels.find(key); found != kernels.end()) return found->second;
    if (kernels.size() >= kMostKernels) kernels.clear();  // oneDNN keeps some, too
    return kernels.emplace(key, make_kernel(op, engine)).first->second;
  }

  memory given(const memory::desc& described, void* data) const {
    return {described, engine, data};
  }

  void multiply(const Gemm& op) {
    const Kernel& kernel = kernel_of(op);
    std::unordered_map<int, memory> arguments = {
        {DNNL_ARG_SRC, given(kernel.a, op.a.data)},
        {DNNL_ARG_WEIGHTS, given(kernel.b, op.b.data)},
        {DNNL_ARG_DST, given(kernel.c, op.c.data)},
        {DNNL_ARG_SCRATCHPAD,
         given(kernel.scratchpad, scratchpad.at_least(kernel.scratchpad.get_size()))}};
    if (op.bias) arguments[DNNL_ARG_BIAS] = given(kernel.bias, op.bias->data);
    kernel.product.execute(stream, arguments);
    stream.wait();
  }
};

bool Onednn::is_there() { return true; }

std::string Onednn::version() {
  const dnnl_version_t* const version = dnnl_version();
  return concat(version->major, ".", version->minor, ".", version->patch);
}

bool Onednn::multiplies_bf16() {
  const Matrix matrix{nullptr, 1, 1, DType::bf16, 1};  // it is only described
  try {
    described_product({.a = matrix, .b = matrix, .c = matrix}, {dnnl::engine::kind::cpu, 0});
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

Onednn::Onednn(int threads) {
  translating([&] { state_ = std::make_unique<State>(State{.threads = threads}); });
}

Onednn::~Onednn() = default;

void Onednn::sgemm(const Product& product, Panel a, Panel b, Panel c) {
  const auto order_of = [](Transpose t) { return t == Transpose::yes ? 'T' : 'N'; };
  set_threads(state_->threads);
  translating([&] {
    dnnl::error::wrap_c_api(dnnl_sgemm(order_of(product.transpose_a), order_of(product.transpose_b),
                                       product.m, product.n, product.k, product.alpha, a.data,
                                       a.stride, b.data, b.stride, product.beta, c.data, c.stride),
                            "dnnl_sgemm failed");
  });
}

void Onednn::multiply(const Gemm& op) {
  set_threads(state_->threads);
  translating([&] { state_->multiply(op); });
}

void Onednn::trim() {
  state_->kernels.clear();
  state_->scratchpad.clear();
}

}  // namespace dstune::cpu
