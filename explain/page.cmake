# Writes a text file as a C string: cmake -DIN=.. -DOUT=.. -P page.cmake
file(READ ${IN} hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "extern const char page_template[];\nconst char page_template[] = {${bytes}0};\n")
