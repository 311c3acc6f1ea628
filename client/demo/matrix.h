// The few matrix products a multilayer perceptron is made of. Row-major, float, one thread.
#pragma once

#include <cstddef>

namespace stepwell::demo {

// c[m x n] = a[m x k] * b[k x n]. The three do not overlap.
void Multiply(const float* a, const float* b, float* c, int m, int k, int n);

// to[columns x rows] = from[rows x columns] transposed.
void Transpose(const float* from, float* to, int rows, int columns);

}  // namespace stepwell::demo
