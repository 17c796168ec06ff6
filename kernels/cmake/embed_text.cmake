# Turns the text file IN into a C file OUT that defines `const char NAME[]`, NUL-terminated.
# Bytes, not a string literal: no limit on length and nothing to escape.
#   cmake -DIN=file.cl -DOUT=file.c -DNAME=symbol [-DSTORAGE=storage.cl] -P embed_text.cmake
# With STORAGE the text stands there once per storage of kernels/storage, after that file.
if(STORAGE)
  foreach(_storage f32 f16 bf16)
    file(READ "${STORAGE}" _prelude HEX)
    file(READ "${IN}" _body HEX)
    string(HEX "#define STORAGE_${_storage}\n" _define)
    string(HEX "#undef STORAGE_${_storage}\n" _undefine)
    string(APPEND _hex "${_define}${_prelude}${_body}${_undefine}")
  endforeach()
else()
  file(READ "${IN}" _hex HEX)
endif()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," _bytes "${_hex}")
string(REGEX REPLACE "(................................................................................)"
       "\\1\n" _bytes "${_bytes}")
get_filename_component(_file "${IN}" NAME)
file(WRITE "${OUT}" "/* Made from ${_file} by embed_text.cmake. */\nextern const char ${NAME}[];\n"
     "const char ${NAME}[] = {\n${_bytes}0};\n")
