"""The benchmark: what scripts/bench does, but for the load itself, which is build/loadgen's work.

    rows        what is measured                      targets     what the results must show
    peers       the servers that are measured         rounds      measuring, in turns
    background  work that goes on beside a row        fill        what is stored before some rows
    flood       work beside a row that takes all      unread      the row about clients that do not read
    memory      the rows about a setlistd's memory    stored      the rows about bytes where a set is stored
    cold        the rows about the first request      start       the row about the start of a process
    results     from samples to one document (JSON)   table       the document for people
    chart       the document as SVG                   cli         the command line
    baseline    comparing two documents; the guard against falls
"""
