#include "client/demo/matrix.h"

#include <algorithm>

// The same source, compiled for wider vectors too and chosen at load time where the machine has them.
// Not under a sanitizer: its runtime is not up yet when the choice is made.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define STEPWELL_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define STEPWELL_WIDE
#endif

namespace stepwell::demo {
namespace {

constexpr int kRowsAtOnce = 4;    // of c, so that each row of b is loaded once for four of them
constexpr int kColumnBlock = 64;  // of c: four rows of it stay in registers or in the nearest cache

}  // namespace

STEPWELL_WIDE
void Multiply(const float* a, const float* b, float* c, int m, int k, int n) {
  for (int column = 0; column < n; column += kColumnBlock) {
    const int width = std::min(kColumnBlock, n - column);
    for (int row = 0; row < m; row += kRowsAtOnce) {
      const int height = std::min(kRowsAtOnce, m - row);
      float sums[kRowsAtOnce][kColumnBlock] = {};
      for (int i = 0; i < k; ++i) {
        const float* from = b + static_cast<std::size_t>(i) * n + column;
        for (int r = 0; r < height; ++r) {
          const float factor = a[static_cast<std::size_t>(row + r) * k + i];
          for (int j = 0; j < width; ++j) sums[r][j] += factor * from[j];
        }
      }
      for (int r = 0; r < height; ++r) {
        float* to = c + static_cast<std::size_t>(row + r) * n + column;
        for (int j = 0; j < width; ++j) to[j] = sums[r][j];
      }
    }
  }
}

void Transpose(const float* from, float* to, int rows, int columns) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      to[static_cast<std::size_t>(column) * rows + row] =
          from[static_cast<std::size_t>(row) * columns + column];
    }
  }
}

}  // namespace stepwell::demo
