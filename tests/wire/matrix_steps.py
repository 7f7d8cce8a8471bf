"""The steps that every client of the matrix runs, by mode, and the expected replies.

A group of steps needs some calls of the client, and its own keys. So a client without one of these calls skips only that group. The
verbs of steps are those of clients/steps.py, and two that the test carries out itself:

ttl KEY         whether the item has a time to live of 1 to 1000 seconds
gone KEY        waits until the server no longer has the item

Words are written as for a shell, with \\n for a newline. A word in capitals stands for a long text of LONG.
"""
import random

from matrix import KEYS, PLAIN, REFUSED, VERBS

LONG = {"LARGE": "".join(random.Random(1).choices("0123456789abcdef", k=500000)),
        "MANY": "\n".join(f"member-{i:05}" for i in range(2500))}
# A rule of sets and one of lists.
CONFIG = """
commands = "q|"
collection "tag-" { type = "set" encoding = "oplog" plain_verbs = true }
collection "feed-" { type = "list" encoding = "csv" delimiter = "," plain_verbs = true }
"""
SET_PREFIX = "tag-"  # a plain get of these has no guaranteed order


class Group:
    def __init__(self, needs, text):
        self.needs = needs.split()
        self.steps = []
        for line in text.strip().splitlines():
            step, _, answer = line.strip().partition(": ")
            self.steps.append((step, REFUSED if answer == "refused" else answer.replace("  ", "\t")))


PLAIN_STEPS = [
    Group("set get", """
        set expires one 1: yes
        get absent: missing
        set a one: yes
        get a: <one>"""),
    Group("add", """
        add b one: yes
        add b two: no
        get b: <one>"""),
    Group("multi", """
        set m1 one: yes
        set m2 two: yes
        multi m1 absent m2: <one>  missing  <two>"""),
    Group("cas", """
        set c one: yes
        gets c: <one>
        cas c two: yes
        cas c three: no
        get c: <two>"""),
    Group("append prepend", """
        set d one: yes
        append d x: yes
        prepend d y: yes
        get d: <yonex>"""),
    Group("incr", """
        set n 10: yes
        incr n 5: 15
        decr n 3: 12
        get n: <12>
        incr missing 1: missing"""),
    Group("touch", """
        set t one: yes
        touch t 1000: yes
        ttl t: yes
        touch absent 1000: no"""),
    Group("delete", """
        set e one: yes
        delete e: yes
        delete absent: no
        get e: missing"""),
    Group("set get", """
        set l LARGE: yes
        get l: <LARGE>
        set x one 1000: yes
        ttl x: yes
        gone expires: yes
        get expires: missing"""),
]

VERBS_STEPS = [
    Group("set get", """
        get tag-one: missing
        set tag-one ann,bob,ann: yes
        get tag-one: <ann,bob,>
        set tag-one cyd: yes
        get tag-one: <cyd,>
        set tag-ttl ann 1000: yes
        ttl tag-ttl: yes
        set feed-one 1,2,2: yes
        get feed-one: <1,2,2,>
        set tag-bad ann,b\x01b: refused
        get tag-bad: missing"""),
    Group("add", """
        add tag-add ann,bob: yes
        add tag-add cyd: no
        get tag-add: <ann,bob,>
        add feed-add 1,2: yes
        add feed-add 3: no
        get feed-add: <1,2,>"""),
    Group("append prepend", """
        set tag-pend ann,bob: yes
        append tag-pend cyd: yes
        get tag-pend: <ann,bob,cyd,>
        prepend tag-pend bob: yes
        get tag-pend: <ann,cyd,>
        append tag-none ann: no
        set feed-pend 1: yes
        append feed-pend 2: yes
        prepend feed-pend 0: yes
        get feed-pend: <0,1,2,>"""),
    Group("cas", """
        set tag-cas ann: yes
        gets tag-cas: <ann,>
        cas tag-cas bob,cyd: yes
        cas tag-cas dee: no
        get tag-cas: <bob,cyd,>
        set feed-cas 1: yes
        gets feed-cas: <1,>
        cas feed-cas 9,8,9: yes
        cas feed-cas 7: no
        get feed-cas: <9,8,9,>"""),
    Group("multi", """
        set tag-multi ann,bob: yes
        set feed-multi 1,2: yes
        set multi plain: yes
        multi tag-multi tag-absent feed-multi multi: <ann,bob,>  missing  <1,2,>  <plain>"""),
    Group("touch", """
        set tag-touch ann: yes
        touch tag-touch 1000: yes
        ttl tag-touch: yes"""),
    Group("incr", """
        set tag-incr 1: yes
        incr tag-incr 1: refused
        get tag-incr: <1,>"""),
    Group("delete", """
        set tag-delete ann: yes
        delete tag-delete: yes
        delete tag-absent: no
        get tag-delete: missing"""),
]

KEYS_STEPS = [
    Group("set get", """
        set q|sadd|topic-1 'ann\\nbob\\ncyd': yes
        set q|srem|topic-1 bob: yes
        get q|smembers|topic-1: <ann\\ncyd>
        set q|sadd|topic-2 'cyd\\ndee': yes
        get q|sinter|topic-1|topic-2: <cyd>
        get q|sunion|topic-1|topic-2: <ann\\ncyd\\ndee>
        get q|scard|topic-1: <2>
        get q|sismember|topic-1|ann: <1>
        get q|sismember|topic-1|bob: <0>
        get q|smembers|topic-9: missing
        set q|rpush|jobs 'one\\ntwo\\nthree': yes
        get q|lrange|jobs|0|9: <one\\ntwo\\nthree>
        get q|lpop|jobs: <one>
        get q|lrange|jobs|0|9: <two\\nthree>
        set q|rpush1|mails '{"to":"a b"}\\n': yes
        get q|lindex|mails|0: <{"to":"a b"}\\n>
        get q|lpos|mails|%7b%22to%22:%22a%20b%22%7d%0a: <0>
        set q|sadd1|topic-1 'eve gus': yes
        set q|sismember|topic-1 'eve gus': yes
        set q|sismember|topic-1 'eve': no
        get q|sismember|topic-1|eve%20gus: <1>
        set q|srem|topic-1 'eve gus': yes
        set q|evincr|RouterError '4\\n1424448000': yes
        get q|evcount|RouterError|2015022016: <COUNT 2015022016 4>
        set q|evadd|RouterError 'the event': yes"""),
    Group("multi", """
        set q|sadd|many-1 'ann\\nbob': yes
        set q|sadd|many-2 cyd: yes
        set plain value: yes
        multi q|scard|many-1 plain q|smembers|many-9 q|scard|many-2: <2>  <value>  missing  <1>"""),
    Group("cas", """
        set q|sadd|topic-3 'ann\\nbob': yes
        gets q|smembers|topic-3: <ann\\nbob>
        cas q|sset|topic-3 cyd: yes
        cas q|sset|topic-3 dee: no
        get q|smembers|topic-3: <cyd>"""),
    Group("set get", """
        set q|sadd|topic-4 ann 1000: yes
        ttl topic-4: yes
        set q|sadd|topic-5 MANY: yes
        get q|scard|topic-5: <2500>
        get q|sunion|topic-5: <MANY>"""),
    Group("set get", """
        set q|smembers|topic-1 ann: refused
        get q|sadd|topic-1: refused
        set q|nonsense|topic-1 ann: refused
        get q|nonsense|topic-1: refused"""),
    Group("add", "add q|sadd|topic-1 eve: refused"),
    Group("append", "append q|sadd|topic-1 eve: refused"),
    Group("incr", """
        incr q|evincr|CountError 4: 4
        incr q|evincr|CountError 1: 5
        incr q|scard|topic-1 1: refused"""),
    Group("touch", "touch q|sadd|topic-1 1000: refused"),
    Group("delete", "delete q|sadd|topic-1: refused"),
    Group("get", "get q|smembers|topic-1: <ann\\ncyd>"),
]

STEPS = {PLAIN: PLAIN_STEPS, VERBS: VERBS_STEPS, KEYS: KEYS_STEPS}
