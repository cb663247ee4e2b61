# Joins the page's parts to one document and writes it as index.html, its policy as policy.txt, and both as page.cpp:
#   cmake -DOUT=FOLDER -P embed.cmake
cmake_minimum_required(VERSION 3.25)
set(here ${CMAKE_CURRENT_LIST_DIR})

# The SHA-256 of a text in base64, as a policy needs it.
function(hash_of text result)
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(SHA256 hex "${text}")
  set(base64 "")
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}00" ${at} 6 three_bytes)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${three_bytes} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 digit)
      string(APPEND base64 ${digit})
    endforeach()
  endforeach()
  # 32 bytes end in the middle of the last group, so its fourth digit is padding.
  string(SUBSTRING ${base64} 0 43 base64)
  set(${result} "${base64}=" PARENT_SCOPE)
endfunction()

file(READ ${here}/index.html html)
file(READ ${here}/style.css style)
set(script "'use strict';\n")
foreach(name dom markdown tree store protocol settings answer thread side memory start)
  file(READ ${here}/script/${name}.js text)
  string(APPEND script "${text}")
endforeach()
string(REPLACE "/* style.css */" "${style}" html "${html}")
string(REPLACE "/* script */" "${script}" html "${html}")

hash_of("${style}" style_hash)
hash_of("${script}" script_hash)
string(CONCAT policy "default-src 'none'; script-src 'sha256-${script_hash}'; style-src 'sha256-${style_hash}'; "
                     "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                     "require-trusted-types-for 'script'; trusted-types 'none'")

file(WRITE ${OUT}/index.html "${html}")
file(WRITE ${OUT}/policy.txt "${policy}")
file(WRITE ${OUT}/page.cpp
     "#include \"server/page/page.h\"\n\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\nnamespace sluice::server::page {\n\nconst Document& document() {\n"
     "  static constexpr Document kDocument{R\"page(${html})page\",\n                              R\"page(${policy})page\"};\n"
     "  return kDocument;\n}\n\n}  // namespace sluice::server::page\n")
