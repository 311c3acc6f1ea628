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
// Of `would`, what is to go beyond `now`, with sums of that alone: what caps that are about to be set would remove, as against
// what goes anyway. All of `would` where its list is cut short.
v1::PreviewCapsResponse RemovedBesides(const v1::PreviewCapsResponse& would,
                                       const v1::PreviewCapsResponse& now);
// Before they are set; `goes` has something.
std::string CapsRemoveText(const v1::CapsPlace& place, const v1::PreviewCapsResponse& goes,
                           const Paint& paint);
std::string SweepText(const v1::SweepCapsResponse& response, const Paint& paint);

}  // namespace stepwell::cli
