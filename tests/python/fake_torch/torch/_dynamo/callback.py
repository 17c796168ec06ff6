"""Callbacks at the begin and end of a compilation; what they are called with differs by version."""


class Handler:
    def __init__(self):
        self.begins, self.ends = [], []

    def register_start_callback(self, function):
        self.begins.append(function)

    def register_end_callback(self, function):
        self.ends.append(function)

    def clear(self):
        self.begins.clear()
        self.ends.clear()

    def begin(self, *args):
        for function in self.begins:
            function(*args)

    def end(self, *args):
        for function in self.ends:
            function(*args)


callback_handler = Handler()
