// PageFolder: the files of the page as they lie in a folder (--ui-dir), for those who work on it: read anew
// for each request, never kept by browsers. A path of a client's stays within the folder: no "..", no
// symbolic link, no hidden file. Thread-safe.
//
//   routes.AddRest(HttpDoor::kNamed, [folder](const HttpRequest& request) { return folder.Answer(request); });
#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/http/http_message.h"

namespace stepwell {

class PageFolder {
 public:
  // kNotFound: there is no such folder.
  static absl::Status Check(const std::string& folder);
  explicit PageFolder(std::string folder) : folder_(std::move(folder)) {}

  // Reads the disk; 404 for whatever is no file of the folder's.
  HttpResponse Answer(const HttpRequest& request) const;

 private:
  const std::string folder_;
};

}  // namespace stepwell
