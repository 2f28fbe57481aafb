# cmake -DOUTPUT=FILE.cpp "-DINPUTS=a.html|b.css" -P embed.cmake: each file as a std::string_view of report_assets.h,
# "page.html" as page_html.
string(REPLACE "|" ";" INPUTS "${INPUTS}")
set(code "#include \"cli/report/report_assets.h\"\n\nnamespace weft::report_assets {\n")
foreach(input ${INPUTS})
  get_filename_component(name ${input} NAME)
  string(REPLACE "." "_" name ${name})
  file(READ ${input} text)
  string(APPEND code "const std::string_view ${name} = R\"asset(${text})asset\";\n")
endforeach()
string(APPEND code "}  // namespace weft::report_assets\n")
file(WRITE ${OUTPUT} "${code}")
