// JSON as profilers write it, made what a strict parser takes.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Puts right what profilers of PyTorch are known to write (issues of pytorch/kineto and pytorch/pytorch): numbers that
// are none ("inf", "nan", "N/A": kineto 105 and 131), which become null; a decimal comma of the user's locale
// (pytorch 191032); names of bytes that are not UTF-8 or are control characters, as of Python's frames (kineto 988,
// pytorch 121219 and 136180), which become '?' and blanks; single backslashes of Windows paths (kineto 617); keys
// without a value, as of a process group without a description ("Process Group Description": ,), which get null. All
// else stays, wrong or not. For text that was refused: it costs more than the parser does.
[[nodiscard]] std::string mended_json(std::string_view json);

}  // namespace weft
