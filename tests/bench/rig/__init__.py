"""The benchmark: what scripts/bench does, but for the load itself, which is build/loadgen's work.

    rows        what is measured                      targets     what the results must show
    peers       the servers that are measured         rounds      measuring, in turns
    background  work that goes on beside a row        memory      the rows about memory
    results     from samples to one document (JSON)   baseline    comparing two documents; the guard against falls
    table       the document for people               chart       the document as SVG
    cli         the command line
"""
