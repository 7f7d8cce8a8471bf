"""The benchmark: what scripts/bench does, but for the load itself, which is build/loadgen's work.

    rows        what is measured                      targets     what the results must show
    peers       the servers that are measured         rounds      measuring, in turns
    background  work that goes on beside a row        fill        what is stored before some rows
    special     the rows that the load generator does not measure: memory, what is stored, the first request, the start
    results     from samples to one document (JSON)   table       the document for people
    chart       the document as SVG                   cli         the command line
    baseline    comparing two documents; the guard against falls
    instructions  counting in place of all that
"""
