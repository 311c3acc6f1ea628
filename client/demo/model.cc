#include "client/demo/model.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "client/demo/matrix.h"

namespace stepwell::demo {
namespace {

void AddBias(const float* bias, float* rows, int row_count, int width) {
  for (int row = 0; row < row_count; ++row) {
    for (int i = 0; i < width; ++i) rows[static_cast<std::size_t>(row) * width + i] += bias[i];
  }
}

void SumRows(const float* rows, float* sum, int row_count, int width) {
  std::fill(sum, sum + width, 0.0f);
  for (int row = 0; row < row_count; ++row) {
    for (int i = 0; i < width; ++i) sum[i] += rows[static_cast<std::size_t>(row) * width + i];
  }
}

// In place; returns the index of the largest.
int Softmax(float* values, int count) {
  const int largest = static_cast<int>(std::max_element(values, values + count) - values);
  const float top = values[largest];
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i] = std::exp(values[i] - top);
  for (int i = 0; i < count; ++i) values[i] /= sum;
  return largest;
}

}  // namespace

Model::Layout Model::LayoutOf(const Shape& shape) {
  const auto product = [](int a, int b) { return static_cast<std::size_t>(a) * b; };
  Layout layout{};
  layout.hidden_weights = layout.embedding + product(shape.symbol_count, shape.embedding);
  layout.hidden_bias =
      layout.hidden_weights + product(shape.context * shape.embedding, shape.hidden);
  layout.output_weights = layout.hidden_bias + shape.hidden;
  layout.output_bias = layout.output_weights + product(shape.hidden, shape.symbol_count);
  layout.total = layout.output_bias + shape.symbol_count;
  return layout;
}

Model::Model(Shape shape, std::uint64_t seed)
    : shape_(shape),
      layout_(LayoutOf(shape)),
      parameters_(layout_.total, 0.0f),
      gradients_(layout_.total, 0.0f) {
  std::mt19937_64 random(seed);
  const auto fill = [&](std::size_t begin, std::size_t end, float deviation) {
    std::normal_distribution<float> normal(0.0f, deviation);
    for (std::size_t i = begin; i < end; ++i) parameters_[i] = normal(random);
  };
  fill(layout_.embedding, layout_.hidden_weights, 0.5f);
  // Keeps the spread of activations through the layer (He et al., 2015); biases begin at zero.
  fill(layout_.hidden_weights, layout_.hidden_bias,
       std::sqrt(2.0f / static_cast<float>(InputWidth())));
  fill(layout_.output_weights, layout_.output_bias,
       std::sqrt(1.0f / static_cast<float>(shape_.hidden)));
}

void Model::Resize(int example_count) {
  if (example_count == example_count_) return;
  example_count_ = example_count;
  const auto rows = static_cast<std::size_t>(example_count);
  inputs_.resize(rows * InputWidth());
  input_gradients_.resize(rows * InputWidth());
  hidden_.resize(rows * shape_.hidden);
  hidden_gradients_.resize(rows * shape_.hidden);
  logits_.resize(rows * shape_.symbol_count);
  losses_.resize(rows);
  guesses_.resize(rows);
}

void Model::Forward(std::span<const int> contexts) {
  Resize(static_cast<int>(contexts.size()) / shape_.context);
  contexts_.assign(contexts.begin(), contexts.end());
  const float* table = &parameters_[layout_.embedding];
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    const float* from = table + static_cast<std::size_t>(contexts_[i]) * shape_.embedding;
    std::copy(from, from + shape_.embedding, &inputs_[i * shape_.embedding]);
  }
  Multiply(inputs_.data(), &parameters_[layout_.hidden_weights], hidden_.data(), example_count_,
           InputWidth(), shape_.hidden);
  AddBias(&parameters_[layout_.hidden_bias], hidden_.data(), example_count_, shape_.hidden);
  for (float& unit : hidden_) unit = std::max(unit, 0.0f);
  Multiply(hidden_.data(), &parameters_[layout_.output_weights], logits_.data(), example_count_,
           shape_.hidden, shape_.symbol_count);
  AddBias(&parameters_[layout_.output_bias], logits_.data(), example_count_, shape_.symbol_count);
}

float Model::Loss(std::span<const int> targets) {
  targets_.assign(targets.begin(), targets.end());
  double sum = 0;
  for (int row = 0; row < example_count_; ++row) {
    float* chances = &logits_[static_cast<std::size_t>(row) * shape_.symbol_count];
    guesses_[row] = Softmax(chances, shape_.symbol_count);
    losses_[row] = -std::log(std::max(chances[targets_[row]], 1e-30f));
    sum += losses_[row];
  }
  return static_cast<float>(sum / example_count_);
}

void Model::Backward() {
  // By the logits: chances minus the truth, and logits_ holds the chances since Loss.
  const float share = 1.0f / static_cast<float>(example_count_);
  for (int row = 0; row < example_count_; ++row) {
    float* chances = &logits_[static_cast<std::size_t>(row) * shape_.symbol_count];
    chances[targets_[row]] -= 1.0f;
    for (int i = 0; i < shape_.symbol_count; ++i) chances[i] *= share;
  }
  const auto transpose = [this](const float* from, int rows, int columns) {
    transposed_.resize(static_cast<std::size_t>(rows) * columns);
    Transpose(from, transposed_.data(), rows, columns);
    return transposed_.data();
  };
  const int width = InputWidth();
  Multiply(transpose(hidden_.data(), example_count_, shape_.hidden), logits_.data(),
           &gradients_[layout_.output_weights], shape_.hidden, example_count_, shape_.symbol_count);
  SumRows(logits_.data(), &gradients_[layout_.output_bias], example_count_, shape_.symbol_count);
  Multiply(logits_.data(),
           transpose(&parameters_[layout_.output_weights], shape_.hidden, shape_.symbol_count),
           hidden_gradients_.data(), example_count_, shape_.symbol_count, shape_.hidden);
  for (std::size_t i = 0; i < hidden_.size(); ++i) {
    if (hidden_[i] <= 0.0f) hidden_gradients_[i] = 0.0f;
  }
  Multiply(transpose(inputs_.data(), example_count_, width), hidden_gradients_.data(),
           &gradients_[layout_.hidden_weights], width, example_count_, shape_.hidden);
  SumRows(hidden_gradients_.data(), &gradients_[layout_.hidden_bias], example_count_,
          shape_.hidden);
  Multiply(hidden_gradients_.data(),
           transpose(&parameters_[layout_.hidden_weights], width, shape_.hidden),
           input_gradients_.data(), example_count_, shape_.hidden, width);
  SpreadEmbeddingGradients();
}

void Model::SpreadEmbeddingGradients() {
  float* table = &gradients_[layout_.embedding];
  std::fill(table, table + layout_.hidden_weights - layout_.embedding, 0.0f);
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    float* to = table + static_cast<std::size_t>(contexts_[i]) * shape_.embedding;
    const float* from = &input_gradients_[i * shape_.embedding];
    for (int j = 0; j < shape_.embedding; ++j) to[j] += from[j];
  }
}

}  // namespace stepwell::demo
