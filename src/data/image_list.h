#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// The image files below a folder that has one sub-folder per class, in the order of their names. Names are
/// packed, since there may be millions. Immutable; any thread may ask.
class ImageList {
 public:
  /// Lists `root`. With `class_names` empty the classes are its sub-folders, sorted; otherwise each
  /// sub-folder must be one of them. Throws UserError if there is no class, or a class without JPEG or PNG
  /// files.
  explicit ImageList(std::string root, const std::vector<std::string>& class_names = {});

  std::int64_t size() const { return static_cast<std::int64_t>(name_starts_.size()); }
  const std::vector<std::string>& class_names() const { return class_names_; }
  std::string path(std::int64_t index) const;
  std::int32_t label(std::int64_t index) const;
  std::int64_t resident_bytes() const;

 private:
  /// The images of one sub-folder, from `first` to the next folder's first.
  struct Folder {
    std::string name;
    std::int32_t label;
    std::int64_t first;
  };
  const Folder& folder_of(std::int64_t index) const;
  void add_folder(const std::string& name, std::int32_t label);

  std::string root_;
  std::vector<std::string> class_names_;
  std::vector<Folder> folders_;
  std::string names_;
  std::vector<std::uint64_t> name_starts_;
};

}  // namespace penstock
