"""The steps that every program in this directory carries out with its client. The programs in other languages do the same.

    PROGRAM PORT text|binary [defaults]

With defaults, the client keeps its default settings, with which it may change values.

A step is a line of words separated by tabs: a verb, a key, and the arguments of the verb. The reply is a line. In both, the byte \\v is
a newline of the data.

    get KEY, gets KEY                       <the value>, or missing; cas uses the token of the last gets
    multi KEY ...                           the reply of get for each, separated by tabs
    set, add, append, prepend KEY DATA [TTL] yes, or no
    cas KEY DATA                            yes, or no
    incr, decr KEY NUMBER                   the number, or missing
    touch KEY TTL, delete KEY               yes, or no

If the client reports an error, the line is "error: " and the client's own words. If the client has no such call, it is "none".
"""
import sys


class Steps:
    """Most clients have the same verbs, and differ in their types for text. A client with a different verb
    overrides it. Values are text, a missing one is None, replies are true or false.
    """

    client = None
    token = None
    lacks = ()
    defaults = False

    @staticmethod
    def data_of(text):
        return text

    @staticmethod
    def text_of(data):
        return data.decode() if isinstance(data, bytes) else data

    def get(self, key):
        return self.text_of(self.client.get(key))

    def gets(self, key):
        data, self.token = self.client.gets(key)
        return self.text_of(data)

    def multi(self, *keys):
        found = self.client.get_multi(keys)
        return [self.text_of(found.get(key)) for key in keys]

    def set(self, key, text, ttl=0):
        return self.client.set(key, self.data_of(text), int(ttl))

    def add(self, key, text):
        return self.client.add(key, self.data_of(text))

    def append(self, key, text):
        return self.client.append(key, self.data_of(text))

    def prepend(self, key, text):
        return self.client.prepend(key, self.data_of(text))

    def cas(self, key, text):
        return self.client.cas(key, self.data_of(text), self.token)

    def incr(self, key, number):
        return self.client.incr(key, int(number))

    def decr(self, key, number):
        return self.client.decr(key, int(number))

    def touch(self, key, ttl):
        return self.client.touch(key, int(ttl))

    def delete(self, key):
        return self.client.delete(key)

    def answer(self, verb, *words):
        if verb in self.lacks:
            return "none"
        outcome = getattr(self, verb)(*words)
        if verb == "multi":
            return "\t".join("missing" if text is None else f"<{text}>" for text in outcome)
        if verb in ("get", "gets"):
            return "missing" if outcome is None else f"<{outcome}>"
        if verb in ("incr", "decr"):
            return "missing" if outcome is None else str(outcome)
        return "yes" if outcome else "no"


def main(steps_of, errors=Exception):
    """steps_of(port, whether binary) connects. errors are the exceptions of the client."""
    steps_of.defaults = sys.argv[3:] == ["defaults"]
    steps = steps_of(int(sys.argv[1]), sys.argv[2] == "binary")
    for line in sys.stdin:
        try:
            words = line.rstrip("\n").replace("\v", "\n").split("\t")
            print(steps.answer(*words).replace("\n", "\v"), flush=True)
        except errors as error:
            print("error: " + " ".join(f"{type(error).__name__}: {error}".split()), flush=True)
