// ProtoJson: answers of the master as JSON with stable keys: the names of the wire contract's
// fields in their order, every field present (empty ones too; one that can be missing, and is, as
// null), enums as short lower-case words, bytes as hexadecimal digits, 64-bit numbers as numbers, and NaN and the infinities as
// "NaN", "Infinity", "-Infinity". Pure.
#pragma once

#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace stepwell::cli {

// {"trial_id": 7, "project": "default", "state": "running", ...}
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);
// One number, or its name as above.
nlohmann::ordered_json NumberJson(double value);

}  // namespace stepwell::cli
