#include "tests/support/places/places.h"

namespace stepwell {

std::string SourcePlace(const std::string& below) { return SOURCE_PLACE "/" + below; }

std::string BuildPlace(const std::string& below) { return BUILD_PLACE "/" + below; }

}  // namespace stepwell
