#include "client/demo/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "client/demo/adam.h"

namespace stepwell::demo {
namespace {

constexpr Model::Shape kSmall{.symbol_count = 5, .context = 3, .embedding = 4, .hidden = 6};
const std::vector<int> kContexts = {0, 1, 2, 3, 4, 0, 1, 1, 1, 4, 2, 0};
const std::vector<int> kTargets = {3, 1, 4, 0};

// The one test that says whether it is gradient descent: every gradient against its difference quotient.
TEST(ModelTest, GradientsAreThoseOfTheLoss) {
  Model model(kSmall, 1);
  const auto loss = [&model] {
    model.Forward(kContexts);
    return model.Loss(kTargets);
  };
  loss();
  model.Backward();
  const std::vector<float> gradients(model.gradients().begin(), model.gradients().end());
  constexpr float kStep = 1e-2f;
  int nonzero = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    float& parameter = model.parameters()[i];
    const float before = parameter;
    parameter = before + kStep;
    const double above = loss();
    parameter = before - kStep;
    const double below = loss();
    parameter = before;
    EXPECT_NEAR(gradients[i], (above - below) / (2 * double{kStep}), 5e-3) << "parameter " << i;
    nonzero += gradients[i] != 0 ? 1 : 0;
  }
  EXPECT_GT(nonzero, static_cast<int>(gradients.size()) / 2);
}

TEST(ModelTest, LossIsTheMeanOfTheExamplesAndGuessesAreTheLikeliest) {
  Model model(kSmall, 2);
  model.Forward(kContexts);
  const float loss = model.Loss(kTargets);
  const auto losses = model.losses();
  EXPECT_NEAR(loss, std::accumulate(losses.begin(), losses.end(), 0.0f) / 4, 1e-6);
  // An example whose target is the guess is at least as likely as an even guess.
  for (int symbol = 0; symbol < kSmall.symbol_count; ++symbol) {
    model.Forward(kContexts);
    model.Loss(std::vector<int>(4, symbol));
    for (int i = 0; i < 4; ++i) {
      if (model.guesses()[i] == symbol) {
        EXPECT_LE(model.losses()[i], std::log(5.0f) + 1e-6);
      }
    }
  }
}

TEST(ModelTest, TheSameSeedIsTheSameModel) {
  Model a(kSmall, 3), b(kSmall, 3), c(kSmall, 4);
  EXPECT_TRUE(std::equal(a.parameters().begin(), a.parameters().end(), b.parameters().begin()));
  EXPECT_FALSE(std::equal(a.parameters().begin(), a.parameters().end(), c.parameters().begin()));
}

TEST(ModelTest, LearnsByHeart) {
  Model model(kSmall, 5);
  Adam adam(model.parameters().size());
  float loss = 0;
  for (int step = 0; step < 500; ++step) {
    model.Forward(kContexts);
    loss = model.Loss(kTargets);
    model.Backward();
    adam.Step(model.gradients(), 0.01, model.parameters());
  }
  EXPECT_LT(loss, 0.01f);
}

TEST(LearningRateTest, WarmsUpAndComesDown) {
  EXPECT_LT(LearningRate(0, 0), LearningRate(20, 0));
  EXPECT_LT(LearningRate(20, 0), LearningRate(60, 0));
  EXPECT_GT(LearningRate(60, 0), LearningRate(60, 0.5));
  EXPECT_GT(LearningRate(60, 0.5), LearningRate(60, 1));
  EXPECT_GT(LearningRate(60, 2), 0);
}

}  // namespace
}  // namespace stepwell::demo
