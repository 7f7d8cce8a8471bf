"""The benchmark behind scripts/bench, without the load generator, which is build/loadgen.

    rows        what is measured                      targets     the targets that the results must meet
    peers       the measured servers                  rounds      measures the servers in turn
    background  work in addition to a row             fill        data that is stored before some rows
    special     the rows that the load generator does not measure: memory, stored bytes, the first request, the start
    results     from samples to one document (JSON)   table       the document as text
    chart       the document as SVG                   cli         the command line
    baseline    compares two documents; detects regressions
    instructions  counts instructions instead of timing
"""
