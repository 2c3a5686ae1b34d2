# Completion scripts and man pages, made by the command from its own option tables: cmake -DNEAP=build/neap -DFOLDER=build/share
# -P generate.cmake. They are laid out as they are installed.

function(make_file path)
    execute_process(COMMAND ${NEAP} help ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE code)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "neap help ${ARGN} left with ${code}")
    endif()
    file(WRITE ${FOLDER}/${path} "${text}")
endfunction()

file(REMOVE_RECURSE ${FOLDER}/man/man1) # a verb that is gone has no page
make_file(bash-completion/completions/neap --completion bash)
make_file(zsh/site-functions/_neap --completion zsh)
make_file(fish/vendor_completions.d/neap.fish --completion fish)
make_file(man/man1/neap.1 --man)

execute_process(COMMAND ${NEAP} help --json OUTPUT_VARIABLE overview COMMAND_ERROR_IS_FATAL ANY)
string(JSON n_verbs LENGTH "${overview}" verbs)
math(EXPR last "${n_verbs} - 1")
foreach(i RANGE ${last})
    string(JSON verb GET "${overview}" verbs ${i} verb)
    make_file(man/man1/neap-${verb}.1 --man ${verb})
endforeach()
