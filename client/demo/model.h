// Model predicts the next symbol from the symbols before it: an embedding of each, one hidden layer,
// a softmax (a neural probabilistic language model). Confined to one thread.
//
//   Model model({.symbol_count = 100}, seed);
//   model.Forward(batch.contexts, batch.size);
//   const float loss = model.Loss(batch.targets);
//   model.Backward();                      // fills gradients()
//   adam.Step(model.gradients(), rate, model.parameters());
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepwell::demo {

class Model {
 public:
  struct Shape {
    int symbol_count = 0;
    int context = 12;
    int embedding = 16;
    int hidden = 160;
  };

  Model(Shape shape, std::uint64_t seed);

  const Shape& shape() const { return shape_; }
  std::span<float> parameters() { return parameters_; }
  std::span<float> gradients() { return gradients_; }

  // `contexts`: for each example its `context` symbols, oldest first.
  void Forward(std::span<const int> contexts);
  // Mean cross entropy in nats of the last Forward, one target symbol per example.
  float Loss(std::span<const int> targets);
  // Of the last Loss, by all parameters.
  void Backward();

  // Per example of the last Loss: its cross entropy, and the most likely symbol.
  std::span<const float> losses() const { return losses_; }
  std::span<const int> guesses() const { return guesses_; }

 private:
  // Where each layer begins in parameters_ and gradients_.
  struct Layout {
    std::size_t embedding, hidden_weights, hidden_bias, output_weights, output_bias, total;
  };
  static Layout LayoutOf(const Shape& shape);
  int InputWidth() const { return shape_.context * shape_.embedding; }
  void Resize(int example_count);
  void SpreadEmbeddingGradients();

  const Shape shape_;
  const Layout layout_;
  std::vector<float> parameters_, gradients_;

  // Of the batch in work.
  int example_count_ = 0;
  std::vector<int> contexts_, targets_, guesses_;
  std::vector<float> inputs_, hidden_, logits_, losses_;
  std::vector<float> input_gradients_, hidden_gradients_, transposed_;
};

}  // namespace stepwell::demo
