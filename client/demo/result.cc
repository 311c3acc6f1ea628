#include "client/demo/result.h"

#include <cstdarg>
#include <cstdio>
#include <vector>

namespace stepwell::demo {
namespace {

__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char line[1024];
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, two lines up.
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  return line;
}

std::string Quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      json += Format("\\u%04x", static_cast<unsigned>(c));
    } else {
      json += c;
    }
  }
  return json + "\"";
}

std::string Recording(const Result& result) {
  if (!result.is_recorded) return "no: " + result.recording_message;
  // Nobody was to confirm anything: the message tells how it is sent.
  const bool is_offline = result.recording_message.find("offline: ") != std::string::npos;
  std::string stored = is_offline         ? "yes"
                       : result.is_stored ? "yes, and all of it is stored by the master"
                                          : "yes, but the master has not confirmed all of it "
                                            "('stepwell agent status' says why)";
  if (!result.recording_message.empty()) stored += "; " + result.recording_message;
  return stored +
         Format(" (%llu events dropped)", static_cast<unsigned long long>(result.dropped_count));
}

long long Long(std::int64_t number) { return number; }

}  // namespace

std::string AsText(const Result& result) {
  std::string text = Format("trial             %s\n", result.trial.c_str());
  text += Format("trained           %lld steps in %.1f s, %.0f examples/s, %d rank%s\n",
                 Long(result.step_count), result.seconds, result.examples_per_second, result.ranks,
                 result.ranks == 1 ? "" : "s");
  text += Format("on                %lld files, %lld bytes; %lld parameters\n",
                 Long(result.training_file_count), Long(result.training_bytes),
                 Long(result.parameter_count));
  text += Format("training loss     %.4f nats/byte\n", result.training_loss);
  text +=
      Format("held-out loss     %.4f nats/byte (%lld bytes of %lld files)\n", result.held_out_loss,
             Long(result.held_out_place_count), Long(result.held_out_file_count));
  text += Format("bigram baseline   %.4f nats/byte: the model is %s it\n", result.bigram_loss,
                 result.IsBelowBaseline() ? "below" : "NOT below");
  return text + "recorded          " + Recording(result) + "\n";
}

std::string AsJson(const Result& result) {
  std::string json = "{\"trial\": " + Quoted(result.trial);
  json += Format(", \"ranks\": %d, \"steps\": %lld, \"seconds\": %.3f", result.ranks,
                 Long(result.step_count), result.seconds);
  json += Format(", \"examples_per_second\": %.1f, \"parameters\": %lld",
                 result.examples_per_second, Long(result.parameter_count));
  json += Format(", \"training_files\": %lld, \"training_bytes\": %lld",
                 Long(result.training_file_count), Long(result.training_bytes));
  json += Format(", \"held_out_files\": %lld, \"held_out_bytes\": %lld",
                 Long(result.held_out_file_count), Long(result.held_out_place_count));
  json += Format(", \"training_loss\": %.6f, \"held_out_loss\": %.6f, \"bigram_loss\": %.6f",
                 result.training_loss, result.held_out_loss, result.bigram_loss);
  json += Format(", \"below_bigram\": %s, \"recorded\": %s, \"stored\": %s",
                 result.IsBelowBaseline() ? "true" : "false", result.is_recorded ? "true" : "false",
                 result.is_stored ? "true" : "false");
  json += ", \"recording_message\": " + Quoted(result.recording_message);
  return json + Format(", \"dropped_events\": %llu}\n",
                       static_cast<unsigned long long>(result.dropped_count));
}

}  // namespace stepwell::demo
