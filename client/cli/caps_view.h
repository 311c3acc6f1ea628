// CapsView: what caps say and what they remove, as text and JSON. Pure functions.
#pragma once

#include <string>

#include "client/cli/terminal.h"
#include "stepwell/v1/admin.pb.h"

namespace stepwell::cli {

// "all trials", "project vision, group gpu", "trial my-run".
std::string PlaceText(const v1::CapsPlace& place);

std::string CapsText(const v1::CapsPlace& place, const v1::GetCapsResponse& response,
                     const Paint& paint);
std::string CapsJson(const v1::GetCapsResponse& response);
std::string CapsSetText(const v1::CapsPlace& place, const v1::SetCapsResponse& response,
                        const Paint& paint);
std::string CapsSetJson(const v1::SetCapsResponse& response);
std::string PreviewText(const v1::PreviewCapsResponse& response, const Paint& paint);
std::string SweepText(const v1::SweepCapsResponse& response, const Paint& paint);

}  // namespace stepwell::cli
