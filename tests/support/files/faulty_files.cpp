#include "support/files/faulty_files.h"

#include <cerrno>
#include <utility>

namespace penstock::testing {

FaultyFiles::FaultyFiles(FileFault fault, Files* inner)
    : fault_(fault), inner_(inner != nullptr ? inner : &own_) {}

std::int64_t FaultyFiles::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

bool FaultyFiles::struck() const {
  const std::lock_guard lock(mutex_);
  return struck_;
}

std::int64_t FaultyFiles::open_files() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(open_.size());
}

int FaultyFiles::strike(bool throws) {
  const std::lock_guard lock(mutex_);
  if (dead_) return -EIO;
  const std::int64_t call = calls_++;
  const bool now = call == fault_.at || (fault_.lasting && call > fault_.at);
  if (!now || fault_.kind == FileFault::Kind::none) return 0;
  struck_ = true;
  if (fault_.kind == FileFault::Kind::error) return -fault_.error_number;
  if (fault_.kind == FileFault::Kind::short_count) {
    cut_next_ = true;
    return 0;
  }
  dead_ = true;
  if (throws) throw Killed{};
  return -EIO;
}

std::int64_t FaultyFiles::shortened(std::int64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const bool cut = std::exchange(cut_next_, false);
  return cut && size_bytes > 1 ? size_bytes / 2 : size_bytes;
}

int FaultyFiles::open(const std::string& path, int flags, unsigned mode) {
  if (const int error = strike(true)) return error;
  const std::lock_guard lock(mutex_);
  // Room for it is taken first, because a test may let that fail.
  auto entry = open_.extract(open_.insert(-1).first);
  const int file = inner_->open(path, flags, mode);
  if (file >= 0) {
    entry.value() = file;
    open_.insert(std::move(entry));
  }
  return file;
}

int FaultyFiles::close(int file) {
  const int error = strike(false);
  {
    const std::lock_guard lock(mutex_);
    open_.erase(file);
  }
  const int closed = inner_->close(file);
  return error != 0 ? error : closed;
}

std::int64_t FaultyFiles::read(int file, void* data, std::int64_t size_bytes) {
  if (const int error = strike(true)) return error;
  return inner_->read(file, data, shortened(size_bytes));
}

std::int64_t FaultyFiles::read_at(int file, void* data, std::int64_t size_bytes, std::int64_t offset_bytes) {
  if (const int error = strike(false)) return error;
  return inner_->read_at(file, data, shortened(size_bytes), offset_bytes);
}

std::int64_t FaultyFiles::write(int file, const void* data, std::int64_t size_bytes) {
  if (const int error = strike(true)) return error;
  return inner_->write(file, data, shortened(size_bytes));
}

int FaultyFiles::sync(int file) {
  if (const int error = strike(true)) return error;
  return inner_->sync(file);
}

int FaultyFiles::lock(int file) {
  if (const int error = strike(true)) return error;
  return inner_->lock(file);
}

int FaultyFiles::set_mode(int file, unsigned mode) {
  if (const int error = strike(true)) return error;
  return inner_->set_mode(file, mode);
}

int FaultyFiles::status(int file, FileStatus& status) {
  if (const int error = strike(true)) return error;
  return inner_->status(file, status);
}

int FaultyFiles::status_at(const std::string& path, bool follow, FileStatus& status) {
  if (const int error = strike(true)) return error;
  return inner_->status_at(path, follow, status);
}

int FaultyFiles::read_link(const std::string& path, std::string& target) {
  if (const int error = strike(true)) return error;
  return inner_->read_link(path, target);
}

int FaultyFiles::writable(const std::string& path) {
  if (const int error = strike(true)) return error;
  return inner_->writable(path);
}

int FaultyFiles::rename(const std::string& from, const std::string& to) {
  if (const int error = strike(true)) return error;
  return inner_->rename(from, to);
}

int FaultyFiles::link(const std::string& from, const std::string& to) {
  if (const int error = strike(true)) return error;
  return inner_->link(from, to);
}

int FaultyFiles::remove(const std::string& path) {
  if (const int error = strike(false)) return error;
  return inner_->remove(path);
}

int FaultyFiles::make_folder(const std::string& path) {
  if (const int error = strike(true)) return error;
  return inner_->make_folder(path);
}

int FaultyFiles::list(const std::string& folder, std::vector<std::string>& names) {
  if (const int error = strike(true)) return error;
  return inner_->list(folder, names);
}

void FaultyFiles::bury() {
  const std::lock_guard lock(mutex_);
  for (const int file : open_) inner_->close(file);
  open_.clear();
}

}  // namespace penstock::testing
