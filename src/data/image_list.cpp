#include "data/image_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

bool is_image_name(const std::string& name) {
  std::string extension = fs::path(name).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

/// Names in `folder`, hidden ones left out, sorted byte by byte so that the order is the same everywhere.
std::vector<std::string> list_names(const std::string& folder, bool folders) {
  std::vector<std::string> all;
  const int error = files().list(folder, all);
  if (error != 0) throw_file_error(fmt::format("cannot list {}", folder), error);
  std::vector<std::string> names;
  for (std::string& name : all) {
    if (name.starts_with('.')) continue;
    const bool wanted = folders ? is_folder(fmt::format("{}/{}", folder, name)) : is_image_name(name);
    if (wanted) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

ImageList::ImageList(std::string root, const std::vector<std::string>& class_names)
    : root_(std::move(root)), class_names_(class_names) {
  const auto folders = list_names(root_, true);
  if (folders.empty()) {
    throw UserError(fmt::format("{} has no classes: it needs a sub-folder of images for each class", root_));
  }
  if (class_names_.empty()) class_names_ = folders;
  for (const std::string& folder : folders) {
    const auto at = std::lower_bound(class_names_.begin(), class_names_.end(), folder);
    if (at == class_names_.end() || *at != folder) {
      throw UserError(fmt::format("{}/{} is a class that the training images do not have", root_, folder));
    }
    add_folder(folder, static_cast<std::int32_t>(at - class_names_.begin()));
  }
  names_.shrink_to_fit();
  name_starts_.shrink_to_fit();
}

void ImageList::add_folder(const std::string& name, std::int32_t label) {
  const auto images = list_names(root_ + "/" + name, false);
  if (images.empty()) {
    throw UserError(fmt::format("class folder {}/{} has no images (.jpg, .jpeg or .png): fill or remove it",
                                root_, name));
  }
  folders_.push_back({name, label, size()});
  for (const std::string& image : images) {
    name_starts_.push_back(names_.size());
    names_ += image;
  }
}

const ImageList::Folder& ImageList::folder_of(std::int64_t index) const {
  const auto after = std::upper_bound(folders_.begin(), folders_.end(), index,
                                      [](std::int64_t i, const Folder& folder) { return i < folder.first; });
  return *(after - 1);
}

std::string ImageList::path(std::int64_t index) const {
  const std::uint64_t begin = name_starts_[static_cast<std::size_t>(index)];
  const std::uint64_t end =
      index + 1 < size() ? name_starts_[static_cast<std::size_t>(index) + 1] : names_.size();
  return fmt::format("{}/{}/{}", root_, folder_of(index).name,
                     std::string_view(names_).substr(begin, end - begin));
}

std::int32_t ImageList::label(std::int64_t index) const {
  return folder_of(index).label;
}

std::int64_t ImageList::resident_bytes() const {
  return static_cast<std::int64_t>(names_.capacity() + name_starts_.capacity() * sizeof(std::uint64_t));
}

}  // namespace penstock
