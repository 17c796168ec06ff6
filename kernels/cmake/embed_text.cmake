# Turns the text file IN into a C file OUT that defines `const char NAME[]`, NUL-terminated.
# Bytes, not a string literal: no limit on length and nothing to escape.
#   cmake -DIN=file.cl -DOUT=file.c -DNAME=symbol -P embed_text.cmake
file(READ "${IN}" _hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," _bytes "${_hex}")
string(REGEX REPLACE "(................................................................................)"
       "\\1\n" _bytes "${_bytes}")
get_filename_component(_file "${IN}" NAME)
file(WRITE "${OUT}" "/* Made from ${_file} by embed_text.cmake. */\nextern const char ${NAME}[];\n"
     "const char ${NAME}[] = {\n${_bytes}0};\n")
