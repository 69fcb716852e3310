#pragma once

#include "models/network_graph.h"
#include "penstock/network.h"

namespace penstock::testing {

/// A builder of networks from images to one label an image, and the graph they give.
class ClassifierBuilder : public NetworkBuilder {
 public:
  ClassifierBuilder(const std::string& name, const Extents& images)
      : NetworkBuilder(name),
        images_(input("images", DType::f32, images)),
        labels_(input("labels", DType::s32, {images[0]})) {}

  Value images() const { return images_; }
  Value labels() const { return labels_; }
  ir::Graph finish(Value logits) {
    classifier(logits, labels_);
    return models::graph_of(NetworkBuilder::finish());
  }

 private:
  Value images_, labels_;
};

}  // namespace penstock::testing
