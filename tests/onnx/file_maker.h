#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace penstock::onnx::testing {

/// A message in Protocol Buffers' wire format, field by field.
class Message {
 public:
  Message& integer(int field, std::int64_t value) {
    tag(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    tag(field, 5);
    bytes_.append(reinterpret_cast<const char*>(&value), 4);
    return *this;
  }
  Message& text(int field, const std::string& value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  Message& integers(int field, const std::vector<std::int64_t>& values) {
    Message packed;
    for (const std::int64_t value : values) packed.varint(static_cast<std::uint64_t>(value));
    return message(field, packed);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, unsigned kind) { varint(static_cast<std::uint64_t>(field) << 3U | kind); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

inline std::string raw(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// A tensor [dims] of `type` (1 float, 7 int64, 10 float16) with raw data.
inline Message tensor(const std::string& name, const std::vector<std::int64_t>& dims, int type,
                      const std::string& data) {
  Message message;
  message.integers(1, dims).integer(2, type).text(8, name).text(9, data);
  return message;
}
inline Message floats(const std::string& name, const std::vector<std::int64_t>& dims,
                      const std::vector<float>& values) {
  return tensor(name, dims, 1, raw(values));
}
inline Message integers(const std::string& name, const std::vector<std::int64_t>& values) {
  return tensor(name, {static_cast<std::int64_t>(values.size())}, 7,
                {reinterpret_cast<const char*>(values.data()), values.size() * 8});
}
/// A tensor whose data is in another file.
inline Message external(const std::string& name, const std::vector<std::int64_t>& dims,
                        const std::string& location, std::int64_t offset) {
  Message message, where, from;
  where.text(1, "location").text(2, location);
  from.text(1, "offset").text(2, std::to_string(offset));
  message.integers(1, dims).integer(2, 1).text(8, name).message(13, where).message(13, from).integer(14, 1);
  return message;
}

/// A value with extents; -1: free, called "batch".
inline Message value(const std::string& name, const std::vector<std::int64_t>& dims, int type = 1) {
  Message shape;
  for (const std::int64_t extent : dims) {
    Message dim;
    if (extent < 0) {
      dim.text(2, "batch");
    } else {
      dim.integer(1, extent);
    }
    shape.message(1, dim);
  }
  Message elements, kind, info;
  elements.integer(1, type).message(2, shape);
  kind.message(1, elements);
  info.text(1, name).message(2, kind);
  return info;
}

inline Message int_attribute(const std::string& name, std::int64_t number) {
  Message message;
  message.text(1, name).integer(3, number).integer(20, 2);
  return message;
}
inline Message ints_attribute(const std::string& name, const std::vector<std::int64_t>& numbers) {
  Message message;
  message.text(1, name).integers(8, numbers).integer(20, 7);
  return message;
}
inline Message float_attribute(const std::string& name, float number) {
  Message message;
  message.text(1, name).real(2, number).integer(20, 1);
  return message;
}

/// A graph and the file around it.
class FileMaker {
 public:
  FileMaker& node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, const std::vector<Message>& attributes = {}) {
    Message message;
    for (const std::string& input : inputs) message.text(1, input);
    for (const std::string& output : outputs) message.text(2, output);
    message.text(3, outputs.empty() ? op : outputs[0]).text(4, op);
    for (const Message& attribute : attributes) message.message(5, attribute);
    graph_.message(1, message);
    return *this;
  }
  FileMaker& weights(const Message& tensor) { return add(5, tensor); }
  FileMaker& input(const std::string& name, const std::vector<std::int64_t>& dims, int type = 1) {
    return add(11, value(name, dims, type));
  }
  FileMaker& output(const std::string& name) { return add(12, value(name, {})); }
  FileMaker& add(int field, const Message& message) {
    graph_.message(field, message);
    return *this;
  }

  std::string bytes(std::int64_t opset = 17) const {
    Message set, model, graph = graph_;
    set.text(1, "").integer(2, opset);
    graph.text(2, "made");
    // A field of a version to come.
    model.integer(1, 9).text(2, "test").message(7, graph).message(8, set).text(99, "from the future");
    return model.bytes();
  }
  void write(const std::string& path, std::int64_t opset = 17) const {
    std::ofstream(path, std::ios::binary) << bytes(opset);
  }

 private:
  Message graph_;
};

}  // namespace penstock::onnx::testing
