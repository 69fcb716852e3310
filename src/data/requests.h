#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace penstock {

/// Throws UserError if the request is for labels per pixel or for volumes, which `name` does not have.
void refuse_pixels_and_volumes(const DataRequest& request, const std::string& name);

/// The number of classes to use where the data has `own`: the request's if it names one. Throws UserError if
/// that is too few.
std::int64_t choose_classes(const DataRequest& request, std::int64_t own, const std::string& name);

/// Throws UserError unless 0 <= label < classes; `where` names the file, `index` the sample.
void check_label(std::int64_t label, std::int64_t classes, const std::string& where, std::int64_t index);

}  // namespace penstock
