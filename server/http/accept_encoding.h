// AcceptEncoding: whether a client takes gzip, by its Accept-Encoding (RFC 9110, 12.5.3). A core.
//
//   if (AcceptsGzip(request)) response.body = Gzip(response.body);
#pragma once

#include "server/http/http_message.h"

namespace stepwell {

// The fields of that name are one list. What names gzip (or x-gzip, its old name) comes before `*`; where one
// entry refuses it, or has a weight that is none, it is not sent: plain is understood by all.
bool AcceptsGzip(const HttpRequest& request);

}  // namespace stepwell
