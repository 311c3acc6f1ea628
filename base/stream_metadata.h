// Names in the metadata of the ingest stream. What the messages say is in the protos; this is what a
// master tells of itself before any message.
#pragma once

namespace stepwell {

// In the answer's initial metadata, sent at once: the database's incarnation, 16 bytes, as Opened
// tells it. An agent whose writers have all ended opens none of them, since their trials would run
// again; from this it learns whether the database may have lost them.
inline constexpr char kIncarnationMetadata[] = "stepwell-incarnation-bin";

}  // namespace stepwell
