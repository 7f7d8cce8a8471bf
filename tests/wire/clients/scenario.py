"""What each client does; the programs in other languages do the same, and print the same lines.

    PROGRAM PORT SET OTHER_SET LIST

SET and OTHER_SET are keys of a set rule, LIST one of a list rule. A reply is printed as yes or no, a value between < and >.
"""
import sys


class Scenario:
    """
    Most clients say the verbs in the same way, and differ in what they take and give for text; where one says a verb otherwise
    it tells how. Values are text, a missing one is None, replies are true or false.
    """

    client = None

    @staticmethod
    def data_of(text):
        return text

    @staticmethod
    def text_of(data):
        return None if data is None else data.decode()

    def append(self, key, text):
        return self.client.append(key, self.data_of(text))

    def prepend(self, key, text):
        return self.client.prepend(key, self.data_of(text))

    def set(self, key, text):
        return self.client.set(key, self.data_of(text))

    def add(self, key, text):
        return self.client.add(key, self.data_of(text))

    def get(self, key):
        return self.text_of(self.client.get(key))

    def gets(self, key):
        """(value, token)"""
        data, token = self.client.gets(key)
        return self.text_of(data), token

    def cas(self, key, text, token):
        return self.client.cas(key, self.data_of(text), token)

    def get_many(self, keys):
        """{key: value}"""
        return {key: self.text_of(data) for key, data in self.client.get_multi(keys).items()}

    def delete(self, key):
        return self.client.delete(key)

    @staticmethod
    def reply(what, good):
        print(f"{what}: {'yes' if good else 'no'}")

    @staticmethod
    def value(what, text):
        print(f"{what}: " + ("missing" if text is None else f"<{text}>"))

    def play(self, one, other, items):
        self.value("missing set", self.get(one))
        self.reply("append to what is missing", self.append(one, "ann,bob,"))
        self.reply("add", self.add(one, "ann,bob,"))
        self.reply("append", self.append(one, "cyd"))
        self.value("set", self.get(one))
        self.reply("prepend removes", self.prepend(one, "bob,"))
        self.value("set", self.get(one))
        _, token = self.gets(one)
        self.reply("cas", self.cas(one, "dee,eve,", token))
        self.reply("cas with an old token", self.cas(one, "fay,", token))
        text, token = self.gets(one)
        self.value("gets", text)
        self.reply("append", self.append(one, "gus,"))
        self.reply("cas after a change", self.cas(one, "fay,", token))
        self.value("set", self.get(one))
        self.reply("set replaces", self.set(other, "hal,hal,ida"))
        self.reply("append to what is missing", self.append(items, "1,2,"))
        self.reply("add", self.add(items, "1,2,"))
        self.reply("append to the list", self.append(items, "2,3,"))
        self.reply("prepend to the list", self.prepend(items, "0,"))
        self.value("list", self.get(items))
        _, token = self.gets(items)
        self.reply("cas of the list", self.cas(items, "9,8,9,", token))
        self.reply("cas of the list with an old token", self.cas(items, "7,", token))
        found = self.get_many([one, other, f"{one}-missing", items])
        print(f"found: {len(found)}")
        for what, key in (("set", one), ("other set", other), ("list", items)):
            self.value(what, found.get(key))
        for key in (one, other, items):
            self.reply("delete", self.delete(key))
            self.value("deleted", self.get(key))


def main(client_of):
    """client_of(port) makes the client."""
    client_of(int(sys.argv[1])).play(*sys.argv[2:5])
