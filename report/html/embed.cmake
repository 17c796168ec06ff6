# Makes a C file with every page file as an array of bytes, and the list prof_html_files of them.
#   cmake "-DFILES=a.html;b.js" -DFROM=folder -DOUT=file.c -P embed.cmake
# Bytes and not string literals: no limit on length, nothing to escape.
set(_text "/* Made by report/html/embed.cmake. */\n#include \"report/html.h\"\n")
set(_list "")
set(_number 0)
foreach(_file IN LISTS FILES)
  file(READ "${FROM}/${_file}" _hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," _bytes "${_hex}")
  string(REGEX REPLACE "(................................................................................)"
         "\\1\n" _bytes "${_bytes}")
  string(APPEND _text "static const unsigned char file_${_number}[] = {\n${_bytes}0};\n")
  string(APPEND _list "    {\"${_file}\", file_${_number}, sizeof file_${_number} - 1},\n")
  math(EXPR _number "${_number} + 1")
endforeach()
string(APPEND _text "const struct prof_html_file prof_html_files[] = {\n${_list}    {0},\n};\n")
file(WRITE "${OUT}" "${_text}")
