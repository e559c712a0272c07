// Matrices of a warp on the host. The warp's first lane holds each whole tile and does all the work,
// so a tile's elements lie in another order than on the device, which promises none.
#pragma once
#pragma GCC system_header

#include <type_traits>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "device_language/warp.h"

namespace nvcuda::wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int m, int n, int k>
struct TileShape {
  static constexpr int rows = m, columns = n;
};
template <int m, int n, int k>
struct TileShape<matrix_a, m, n, k> {
  static constexpr int rows = m, columns = k;
};
template <int m, int n, int k>
struct TileShape<matrix_b, m, n, k> {
  static constexpr int rows = k, columns = n;
};

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment : TileShape<Use, m, n, k> {
  using element_type = T;
  static constexpr int num_elements = fragment::rows * fragment::columns;
  static constexpr int num_storage_elements = num_elements;
  T x[num_elements];  ///< row after row
};

/// Whether this lane does the warp's work.
inline bool leads() { return cuda_on_host::lane_id() == 0; }

template <class Fragment>
void load_tile(Fragment& tile, const typename Fragment::element_type* source, unsigned ld, bool by_rows) {
  if (!leads()) return;
  for (int row = 0; row < Fragment::rows; ++row) {
    for (int column = 0; column < Fragment::columns; ++column) {
      const auto outer = static_cast<unsigned>(by_rows ? row : column);
      const auto inner = static_cast<unsigned>(by_rows ? column : row);
      tile.x[row * Fragment::columns + column] = source[outer * ld + inner];
    }
  }
}

template <class Use, int m, int n, int k, class T, class Layout>
void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& tile, const T* source, unsigned ld) {
  load_tile(tile, source, ld, std::is_same_v<Layout, row_major>);
}

template <int m, int n, int k, class T>
void load_matrix_sync(fragment<accumulator, m, n, k, T>& tile, const T* source, unsigned ld, layout_t layout) {
  load_tile(tile, source, ld, layout == mem_row_major);
}

template <int m, int n, int k, class T>
void store_matrix_sync(T* target, const fragment<accumulator, m, n, k, T>& tile, unsigned ld, layout_t layout) {
  if (!leads()) return;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      const auto outer = static_cast<unsigned>(layout == mem_row_major ? row : column);
      const auto inner = static_cast<unsigned>(layout == mem_row_major ? column : row);
      target[outer * ld + inner] = tile.x[row * n + column];
    }
  }
}

template <class Use, int m, int n, int k, class T, class Layout>
void fill_fragment(fragment<Use, m, n, k, T, Layout>& tile, const std::type_identity_t<T>& value) {
  if (!leads()) return;
  for (T& element : tile.x) element = value;
}

template <int m, int n, int k, class T, class LayoutA, class LayoutB>
void mma_sync(fragment<accumulator, m, n, k, float>& d, const fragment<matrix_a, m, n, k, T, LayoutA>& a,
              const fragment<matrix_b, m, n, k, T, LayoutB>& b, const fragment<accumulator, m, n, k, float>& c) {
  if (!leads()) return;
  for (int row = 0; row < m; ++row) {
    float sums[n];
    for (int column = 0; column < n; ++column) sums[column] = c.x[row * n + column];
    for (int inner = 0; inner < k; ++inner) {
      const float left = a.x[row * k + inner];
      for (int column = 0; column < n; ++column) sums[column] += left * static_cast<float>(b.x[inner * n + column]);
    }
    for (int column = 0; column < n; ++column) d.x[row * n + column] = sums[column];
  }
}

}  // namespace nvcuda::wmma
