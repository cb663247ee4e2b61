# Writes a header with the version and the commit of the source tree; called at every build, it touches the file only when
# they changed.   cmake -DSOURCE=... -DHEADER=... -DVERSION=... -P BuildInfo.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=10 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT commit)
  set(commit "commit unknown")
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "// Which build this is; written by cmake/BuildInfo.cmake.
#pragma once

namespace sluice::cli {

inline constexpr const char* kVersion = \"@VERSION@\";
inline constexpr const char* kCommit = \"@commit@\";

}  // namespace sluice::cli
" @ONLY)
