# embed.cmake: the page of `neap report` as C: one text from cli/page/, split where the data goes.
#
#   cmake -DPAGE=cli/page -DOUTPUT=report_text.c -P cmake/embed.cmake
#
# In report.html the line @STYLE@ stands for report.css, @SCRIPT@ for the scripts named there in their order, and @DATA@
# for what the command writes. All of it is done on hex digits: CMake's own strings give meaning to brackets and
# semicolons, of which scripts are full.
cmake_minimum_required(VERSION 3.21)

set(scripts base.js data.js layout.js view.js scales.js lanes.js draw.js curve.js words.js tables.js pane.js
    report.js)

function(hex_of text result)
    string(HEX "${text}" hex)
    set(${result} ${hex} PARENT_SCOPE)
endfunction()

file(READ ${PAGE}/report.html text HEX)
file(READ ${PAGE}/report.css style HEX)
set(script "")
foreach(name IN LISTS scripts)
    file(READ ${PAGE}/${name} part HEX)
    string(APPEND script ${part})
endforeach()

foreach(mark STYLE SCRIPT)
    hex_of("@${mark}@" hex)
    string(TOLOWER ${mark} name)
    if(NOT text MATCHES "${hex}")
        message(FATAL_ERROR "report.html has no place for @${mark}@")
    endif()
    string(REPLACE "${hex}" "${${name}}" text "${text}")
endforeach()

hex_of("@DATA@" hex)
string(FIND "${text}" "${hex}" at)
math(EXPR is_odd "${at} % 2")
if(at EQUAL -1 OR is_odd)
    message(FATAL_ERROR "report.html has no place for the data: @DATA@")
endif()
string(LENGTH "${hex}" n_mark)
math(EXPR after "${at} + ${n_mark}")
string(SUBSTRING "${text}" 0 ${at} head)
string(SUBSTRING "${text}" ${after} -1 tail)

set(source "/* Made from cli/page by cmake/embed.cmake. */\n#include \"report_text.h\"\n")
foreach(part head tail)
    string(REGEX REPLACE "(................................)" "\\1\n" lines "${${part}}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${lines}")
    string(APPEND source "\nconst unsigned char report_text_${part}[] = {\n${bytes}};\n"
        "const size_t report_text_${part}_bytes = sizeof report_text_${part};\n")
endforeach()
file(WRITE ${OUTPUT} "${source}")
