# From CTest's LastTest.log to one line a test: stage, program, test, result (passed, failed, skipped) and, for a
# skipped one, why; tabs between. A test that had to try again says "[  RETRIED ] WHAT" each time: a line `retried`, beside
# its own. cmocka runs many tests in a program, and leaves with 0 when some of them were skipped:
# CTest alone would call those passed. A program without cmocka's marks (a script, a fuzz target) counts as one test.
#   awk -v stage=asan -v failures=FILE -f test_results.awk LastTest.log
# The output of programs that failed is appended to `failures`.

function result(test, outcome, why) {
    printf "%s\t%s\t%s\t%s\t%s\n", stage, program, test, outcome, why
    n_results++
    if (outcome == "failed") {
        n_failed++
    }
}

function end_test(outcome, why) { # of the cmocka test that is running
    result(running, outcome, why)
    running = ""
    reason = ""
}

function end_program(outcome) {
    if (program == "") {
        return
    }
    if (running != "") {
        end_test("failed", "") # it never came to its end
    }
    if (outcome == "skipped") {
        result("", "skipped", last_line)
    } else if (outcome == "failed" && !n_failed) {
        result("", "failed", "") # a sanitizer's report at exit, a time-out
    } else if (!n_results) {
        result("", outcome, "")
    }
    if (outcome == "failed") {
        printf "---- %s: %s\n%s", stage, program, output >> failures
    }
    program = ""
}

/^[0-9]+\/[0-9]+ Testing: / && !in_output {
    end_program("failed")
    program = $0
    sub(/^[0-9]+\/[0-9]+ Testing: /, "", program)
    running = reason = output = last_line = ""
    n_results = n_failed = never_ran = 0
    next
}
program == "" { next }
/^Command: ""$/ && !in_output { never_ran = 1 } # no such program; CTest calls that passed in this log
/^Output:$/ && !in_output { in_output = 1; getline; next } # a line of dashes follows
/<end of output>$/ { in_output = 0; next }
/^Test Passed\.$/ && !in_output { end_program(never_ran ? "failed" : "passed"); next }
/^Test Skipped\.$/ && !in_output { end_program("skipped"); next }
/^Test [A-Z][a-z ]*\.$/ && !in_output { end_program("failed"); next }
!in_output { next }

{
    output = output $0 "\n"
    if ($0 != "") {
        last_line = $0
    }
}
/^\[  RETRIED \] / { printf "%s\t%s\t\tretried\t%s\n", stage, program, substr($0, 14) } # no test of its own
/^\[ RUN      \] / {
    if (running != "") {
        end_test("failed", "")
    }
    running = substr($0, 14)
    reason = ""
    next
}
/^\[  REASON  \] / { reason = substr($0, 14); next }
running == "" { next } # cmocka lists failed and skipped tests again in the end
$0 == "[       OK ] " running { end_test("passed", "") }
$0 == "[  SKIPPED ] " running { end_test("skipped", reason) }
$0 == "[  FAILED  ] " running || $0 == "[  ERROR   ] " running { end_test("failed", "") }

END { end_program("failed") }
